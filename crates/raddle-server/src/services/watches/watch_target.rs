//! The folder to watch for changes of a path.

use std::fs;
use std::path::{Path, PathBuf};

use notify::RecursiveMode;

use crate::wire_error::WireError;

/// Limit: folders below one watch; beyond it, the server returns an error.
///
/// The system is asked for each of them, by one thread for all clients.
const FOLDERS_MAX: usize = 100_000;

/// A path, and the folder to watch for its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchTarget {
    /// The real path, without links in the folders above it: the system knows a folder by one name
    /// only, however many it has.
    pub(super) real: PathBuf,
    /// The folder to watch.
    pub(super) target: PathBuf,
    pub(super) mode: RecursiveMode,
    /// Whether the path exists.
    pub(super) exists: bool,
}

impl WatchTarget {
    /// Resolves a path. This blocks on its disk, so that the watcher's thread need not.
    pub(super) fn of(path: &Path) -> Result<Self, WireError> {
        if path.is_dir() {
            let real = fs::canonicalize(path)?;
            return Ok(Self {
                target: real.clone(),
                real,
                mode: RecursiveMode::Recursive,
                exists: true,
            });
        }
        // A file is replaced more often than written, so its folder is watched.
        let folder = path.ancestors().skip(1).find(|folder| folder.is_dir());
        let folder = folder.unwrap_or(Path::new("/"));
        let target = fs::canonicalize(folder)?;
        let below = path.strip_prefix(folder).unwrap_or(path);
        Ok(Self {
            real: target.join(below),
            target,
            mode: RecursiveMode::NonRecursive,
            exists: path.exists(),
        })
    }

    pub(super) fn is_recursive(&self) -> bool {
        self.mode == RecursiveMode::Recursive
    }

    /// Walks the folders to be watched, and rejects too many of them. The watcher's thread then
    /// finds them in the cache. Links are followed neither here nor there.
    pub(super) fn walk(&self) -> Result<(), WireError> {
        let mut waiting = Vec::new();
        if self.is_recursive() {
            waiting.push(self.target.clone());
        }
        let mut count = 0;
        while let Some(folder) = waiting.pop() {
            count += 1;
            if count > FOLDERS_MAX {
                let target = self.target.display();
                let message = format!("{target} has more than {FOLDERS_MAX} folders in it");
                return Err(WireError::Refused(message.into()));
            }
            // An unreadable folder is not watched either.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(entry.path());
                }
            }
        }
        Ok(())
    }
}
