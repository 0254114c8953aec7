//! Errors of file tools, worded so that a model can act on them.

use std::io;
use std::path::PathBuf;

/// Error of a file tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The path does not exist.
    #[error("{} does not exist; list the folder to see what does", .0.display())]
    Missing(PathBuf),
    /// The path is not valid.
    #[error("{:?} is no usable path: {why}", .path.display())]
    Path {
        /// The path as given.
        path: PathBuf,
        /// Reason why it cannot be used.
        why: &'static str,
    },
    /// A folder where a file is needed.
    #[error("{} is a folder, not a file", .0.display())]
    Folder(PathBuf),
    /// A file where a folder is needed.
    #[error("{} is not a folder", .0.display())]
    NotFolder(PathBuf),
    /// Neither a file nor a folder.
    #[error("{} is {what}, and only ordinary files can be read or written", .path.display())]
    Special {
        /// Path of the pipe, socket or device.
        path: PathBuf,
        /// Its kind, as in "a pipe".
        what: &'static str,
    },
    /// A link that would have to be changed itself.
    #[error("{} is a symbolic link; remove or rename links with a command", .0.display())]
    Link(PathBuf),
    /// A link that must not be followed, or a loop of links.
    #[error("{} leads through links of the system or in a circle, which are not followed", .0.display())]
    Links(PathBuf),
    /// A path that must not be read in this thread.
    #[error("{} may not be read in this thread", .0.display())]
    Hidden(PathBuf),
    /// A path that must not be written in this thread.
    #[error("{} is protected: the user's tools obey what is written there, so it cannot be changed with this tool", .0.display())]
    Protected(PathBuf),
    /// A file without write permission bits.
    #[error("{} is read-only; make it writable first", .0.display())]
    ReadOnly(PathBuf),
    /// A file larger than the tool's limit.
    #[error("{} has {bytes} bytes, more than the {max} that this tool handles; use a command", .path.display())]
    TooLarge {
        /// Path of the file that is too large.
        path: PathBuf,
        /// Size of the file in bytes.
        bytes: u64,
        /// Limit of the tool in bytes.
        max: u64,
    },
    /// A file that is not UTF-8 text.
    #[error("{} is binary or not UTF-8, so it cannot be handled as text; use a command", .0.display())]
    Binary(PathBuf),
    /// Invalid arguments of the call.
    #[error("{0}")]
    Arguments(String),
    /// An operation on the disk failed.
    #[error("{}: {source}", .path.display())]
    Disk {
        /// Path of the failed operation.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}
