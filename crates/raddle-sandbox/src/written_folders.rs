//! Folders that sandboxed commands of one Raddle home have ever been allowed to write.
//!
//! A command may have created a link in such a folder, or a program. A file of the home lists the
//! folders, because the thread or the client that named one may be gone, or belong to another
//! process. Each entry is between NUL bytes, so that a truncated one damages no other; processes
//! add theirs under a lock.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

/// The file, below the home.
const FILE: &str = "written-folders";

/// The size above which entries of folders that no longer exist are dropped.
const BYTES_MAX: u64 = 256 * 1024;

/// The name below a workspace that is listed with it, and distinguishes it from scratch.
const WORKSPACE_MARK: &str = ".git";

/// The folders of one home.
#[derive(Clone, Debug)]
pub struct WrittenFolders {
    file: PathBuf,
}

impl WrittenFolders {
    /// Returns the folders of the home at this path.
    pub fn of(home: &Path) -> Self {
        Self {
            file: home.join(FILE),
        }
    }

    /// Adds folders. Those that this process has added before cost nothing.
    pub fn add(&self, folders: &[PathBuf]) -> io::Result<()> {
        static ADDED: Mutex<BTreeSet<(PathBuf, PathBuf)>> = Mutex::new(BTreeSet::new());
        let mut added = ADDED.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = |folder: &PathBuf| (self.file.clone(), folder.clone());
        let new = folders.iter().filter(|it| !added.contains(&entry(it)));
        let new: BTreeSet<&PathBuf> = new.collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut file = self.open()?;
        flock(&file, FlockOperation::LockExclusive)?;
        let mut known = read(&mut file)?;
        let is_long = file.metadata()?.len() > BYTES_MAX;
        if is_long {
            known.retain(|it| it.exists() || marked_workspace(it).is_some_and(Path::exists));
            known.extend(new.iter().copied().cloned());
            let bytes = entries(known.iter());
            file.set_len(0)?;
            file.write_all(&bytes)?;
        } else {
            let unknown = new.iter().copied().filter(|it| !known.contains(*it));
            file.write_all(&entries(unknown))?;
        }
        added.extend(folders.iter().map(entry));
        Ok(())
    }

    /// Adds folders in which names are protected.
    pub(crate) fn add_workspaces(&self, folders: &[PathBuf]) -> io::Result<()> {
        let marks: Vec<PathBuf> = folders.iter().map(|it| it.join(WORKSPACE_MARK)).collect();
        self.add(&marks)
    }

    /// Returns those that were added as workspaces and exist.
    pub(crate) fn workspaces(&self) -> io::Result<BTreeSet<PathBuf>> {
        let all = self.all()?;
        let workspaces = all.iter().filter_map(|it| marked_workspace(it));
        Ok(workspaces
            .filter(|it| it.exists())
            .map(Path::to_owned)
            .collect())
    }

    /// Returns all folders that were added.
    pub fn all(&self) -> io::Result<BTreeSet<PathBuf>> {
        match File::open(&self.file) {
            Ok(mut file) => read(&mut file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    fn open(&self) -> io::Result<File> {
        if let Some(home) = self.file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        options.open(&self.file)
    }
}

/// Returns the workspace that an entry marks.
fn marked_workspace(entry: &Path) -> Option<&Path> {
    entry.parent().filter(|_| entry.ends_with(WORKSPACE_MARK))
}

fn read(file: &mut File) -> io::Result<BTreeSet<PathBuf>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let entries = bytes.split(|byte| *byte == 0);
    let folders = entries.map(|it| PathBuf::from(OsStr::from_bytes(it)));
    Ok(folders.filter(|it| it.is_absolute()).collect())
}

fn entries<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for folder in folders {
        bytes.push(0);
        bytes.extend_from_slice(folder.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_remembered_once_and_dropped_when_they_are_gone() {
        let home = tempfile::tempdir().expect("a folder");
        let folders = WrittenFolders::of(home.path());
        assert_eq!(folders.all().expect("none"), BTreeSet::new());
        let existing = home.path().to_owned();
        let missing = |number: u32| home.path().join(format!("{number:0100}"));
        for _ in 0..2 {
            folders.add(&[existing.clone(), missing(0)]).expect("added");
        }
        let length = |it: &WrittenFolders| it.file.metadata().expect("a file").len();
        let two = entries([&existing, &missing(0)].into_iter()).len() as u64;
        assert_eq!(length(&folders), two);
        let all = BTreeSet::from([existing.clone(), missing(0)]);
        assert_eq!(folders.all().expect("all"), all);
        // Another process was killed while it added one.
        let mut file = folders.open().expect("a file");
        file.write_all(b"\0/cut").expect("written");
        folders.add(&[missing(1)]).expect("added");
        let all = BTreeSet::from([existing.clone(), missing(0), missing(1), "/cut".into()]);
        assert_eq!(folders.all().expect("all"), all);
        let many: Vec<PathBuf> = (0..3_000).map(missing).collect();
        folders
            .add_workspaces(&[existing.clone(), missing(0)])
            .expect("added");
        folders.add(&many).expect("added");
        folders.add(&[missing(3_000)]).expect("added");
        let all = BTreeSet::from([
            existing.clone(),
            existing.join(WORKSPACE_MARK),
            missing(3_000),
        ]);
        assert_eq!(folders.all().expect("all"), all);
        let workspaces = folders.workspaces().expect("all");
        assert_eq!(workspaces, BTreeSet::from([existing]));
    }
}
