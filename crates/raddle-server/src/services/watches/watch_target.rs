//! Where to look in order to see a path.

use std::fs;
use std::path::{Path, PathBuf};

use notify::RecursiveMode;

use crate::wire_error::WireError;

/// How many folders one watch may have below it. The system is asked for each of them, by one thread
/// for everyone.
const FOLDERS_MAX: usize = 100_000;

/// Where a path is, and which folder shows what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchTarget {
    /// The path by the name the system uses, without links in the folders above it: the system knows a
    /// folder by one name only, however many it has.
    pub(super) real: PathBuf,
    /// The folder to look at.
    pub(super) target: PathBuf,
    pub(super) mode: RecursiveMode,
    /// Whether the path exists.
    pub(super) there: bool,
}

impl WatchTarget {
    /// Looks at a path. This waits for its disk, so that the one who asks the system need not.
    pub(super) fn of(path: &Path) -> Result<Self, WireError> {
        if path.is_dir() {
            let real = fs::canonicalize(path)?;
            return Ok(Self {
                target: real.clone(),
                real,
                mode: RecursiveMode::Recursive,
                there: true,
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
            there: path.exists(),
        })
    }

    pub(super) fn is_recursive(&self) -> bool {
        self.mode == RecursiveMode::Recursive
    }

    /// Walks through what will be watched, and refuses too many folders. Whoever asks the system for them
    /// finds them at hand after that. Links are not followed, here and there.
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
            // What may not be read is not watched either.
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(entry.path());
                }
            }
        }
        Ok(())
    }
}
