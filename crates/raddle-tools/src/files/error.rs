//! Why a tool could not do what it was asked to, in words that a model can act on.

use std::io;
use std::path::PathBuf;

/// Why a tool could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The path leads nowhere.
    #[error("{} does not exist; list the folder to see what does", .0.display())]
    Missing(PathBuf),
    /// The path cannot be a path.
    #[error("{:?} is no usable path: {why}", .path.display())]
    Path {
        /// It.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// It is a folder where a file is needed.
    #[error("{} is a folder, not a file", .0.display())]
    Folder(PathBuf),
    /// It is a file where a folder is needed.
    #[error("{} is not a folder", .0.display())]
    NotFolder(PathBuf),
    /// It is neither.
    #[error("{} is {what}, and only ordinary files can be read or written", .path.display())]
    Special {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It is a link where the link itself would have to change.
    #[error("{} is a symbolic link; remove or rename links with a command", .0.display())]
    Link(PathBuf),
    /// What leads there may not be followed.
    #[error("{} leads through links of the system or in a circle, which are not followed", .0.display())]
    Links(PathBuf),
    /// It may not be read here.
    #[error("{} may not be read in this thread", .0.display())]
    Hidden(PathBuf),
    /// It may not be written here.
    #[error("{} is protected: the user's tools obey what is written there, so it cannot be changed with this tool", .0.display())]
    Protected(PathBuf),
    /// It has no bit that lets it be written.
    #[error("{} is read-only; make it writable first", .0.display())]
    ReadOnly(PathBuf),
    /// It is larger than a tool handles.
    #[error("{} has {bytes} bytes, more than the {max} that this tool handles; use a command", .path.display())]
    TooLarge {
        /// It.
        path: PathBuf,
        /// How large.
        bytes: u64,
        /// How large it may be.
        max: u64,
    },
    /// It is no text.
    #[error("{} is binary or not UTF-8, so it cannot be handled as text; use a command", .0.display())]
    Binary(PathBuf),
    /// What the model gave does not fit.
    #[error("{0}")]
    Arguments(String),
    /// The disk failed.
    #[error("{}: {source}", .path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// How.
        source: io::Error,
    },
}
