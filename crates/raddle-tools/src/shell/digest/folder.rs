//! The state of a folder with all that is in it: what counts where any of its files could be run.
//!
//! Only what the system tells of each file counts, because reading all of them would take too long. A
//! sandboxed command cannot choose the time at which the system saw a file change.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The most files and folders that count, those nearest to the top first.
const ENTRIES_MAX: usize = 32_768;

/// Folders that are full of what tools write all the time. They count only where the line names them.
const BUSY: &str = ".cache .git .gradle .mypy_cache .next .pytest_cache .raddle .venv __pycache__ build dist \
    node_modules target venv";

/// The state of a folder.
pub(super) struct FolderState {
    /// The sum over every file in it.
    pub(super) sum: Vec<u8>,
    /// Names in it and in each folder below, where nothing is. A hold on them keeps sandboxed commands from
    /// writing in the folders.
    pub(super) holds: Vec<PathBuf>,
}

/// Looks at a folder with all that is in it. `names` are those of the line.
pub(super) fn look(folder: &Path, names: &[&str]) -> FolderState {
    let mut sum = Sha256::new();
    let mut holds = Vec::new();
    let mut count = 0;
    let mut ahead = VecDeque::from([folder.to_owned()]);
    while let Some(folder) = ahead.pop_front() {
        holds.push(folder.join("*"));
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        let entries = entries.flatten().map(|it| it.path());
        let entries = entries.filter(|it| !is_dotfile_of_home(it));
        let mut entries: Vec<PathBuf> = entries.collect();
        entries.sort();
        entries.truncate(ENTRIES_MAX - count);
        count += entries.len();
        for path in entries {
            let Ok(about) = path.symlink_metadata() else {
                continue;
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_named = || names.iter().any(|it| it.split('/').any(|it| it == name));
            if about.is_dir() {
                let is_busy = BUSY.split_whitespace().any(|it| it == name) && !is_named();
                if !is_busy {
                    ahead.push_back(path.clone());
                }
                // It counts by its files. Empty ones come and go with commands in the sandbox.
                continue;
            }
            sum.update(state(&about));
            if about.is_symlink() {
                let target = std::fs::read_link(&path).unwrap_or_default();
                sum.update(target.as_os_str().as_encoded_bytes());
                sum.update(path.metadata().map(|it| state(&it)).unwrap_or_default());
            }
            sum.update(path.as_os_str().as_encoded_bytes());
            sum.update([0]);
        }
    }
    FolderState {
        sum: sum.finalize().to_vec(),
        holds,
    }
}

/// Whether it is a dotfile of the user's home: programs write them all the time, and sandboxed commands cannot.
fn is_dotfile_of_home(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".") && path.parent() == std::env::home_dir().as_deref()
}

fn state(about: &std::fs::Metadata) -> String {
    format!(
        "{} {} {} {} {} {} {}\0",
        about.dev(),
        about.ino(),
        about.len(),
        about.mtime(),
        about.mtime_nsec(),
        about.ctime(),
        about.ctime_nsec()
    )
}
