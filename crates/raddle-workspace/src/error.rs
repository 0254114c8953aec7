//! Errors of the store and of the folder.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::{ContentHash, SnapshotId};

/// Failure of an operation on a workspace. A file that cannot be read is no error but a gap.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk failed or refused.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Another process, or another handle of this one, has the store open.
    #[error("the snapshot store {} is in use by another process", .0.display())]
    Busy(PathBuf),
    /// The folder of the workspace, or one above it, is a symbolic link.
    #[error(
        "the path {} leads through a symbolic link now, and nothing was opened; pass the real path",
        .0.display()
    )]
    Link(PathBuf),
    /// The workspace lies in the store.
    #[error("the workspace must not lie in the snapshot store {}", .0.display())]
    Nested(PathBuf),
    /// A folder has too much in it to be copied.
    #[error(
        "{} has more than {entries_max} entries or {} GiB, which is too much to copy",
        folder.display(),
        bytes_max >> 30
    )]
    TooLarge {
        /// The folder.
        folder: PathBuf,
        /// Maximum number of files, links and folders.
        entries_max: u64,
        /// Maximum number of bytes.
        bytes_max: u64,
    },
    /// A file of the store has other content than was written.
    #[error("{} is damaged: {what}; delete the store to start anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        what: &'static str,
    },
    /// The store has no such snapshot; it may have been pruned.
    #[error("no snapshot {0}: it was pruned, or never taken")]
    NoSnapshot(SnapshotId),
    /// The store has no such content.
    #[error("no content {0} in the snapshot store")]
    NoContent(ContentHash),
    /// A restore that was cut short must be completed first.
    #[error("a restore was interrupted: call recover first")]
    Interrupted,
    /// The disk failed or refused during a restore; every file is as it was before.
    #[error("nothing was restored: {0}")]
    NotRestored(#[source] Box<Error>),
    /// A file changed while it was restored; every file is as it was before.
    #[error("{} changed while files were restored; nothing was restored", .0.display())]
    Changed(PathBuf),
}

impl Error {
    pub(crate) fn disk(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Disk {
            path: path.to_owned(),
            source: source.into(),
        }
    }

    pub(crate) fn damaged(path: &Path, what: &'static str) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what,
        }
    }
}

/// Reports whether a path cannot exist as named: absent, or below something that is no folder.
pub(crate) fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}
