//! State of whole folders, for lines that could run any file in them.
//!
//! Only metadata counts, because reading all files would take too long. A sandboxed command cannot
//! choose the change time that the system records.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use raddle_sandbox::scratch_folders;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::DigestInput;
use super::file_name::path;

/// Limit: files and folders that are part of an approval of a command that could run any of them;
/// beyond it, no approval is requested, and the command does not run.
const ENTRIES_MAX: usize = 262_144;

/// Folders that tools write all the time. They count only if the line names them.
const BUSY: &str = ".cache .git .gradle .mypy_cache .next .pytest_cache .raddle .venv __pycache__ build dist \
    node_modules target venv";

pub(super) struct FolderState {
    /// Sum over the metadata of every file.
    pub(super) sum: Vec<u8>,
    /// Paths to hold: `*` for each whole folder, and files with the prefix of a name. A hold keeps
    /// sandboxed commands from writing there.
    pub(super) holds: Vec<PathBuf>,
    /// Reason why the sum does not cover every file, for the model and the user.
    pub(super) unseen: Option<String>,
}

/// Computes the state of the folders of a line and of its thread. Other folders that sandboxed
/// commands can write are included only where a link, or one of `names` (those of the line), points
/// into them.
pub(super) fn look(it: DigestInput<'_>, names: &[&str]) -> FolderState {
    let mut walk = FolderWalk {
        names,
        ..FolderWalk::default()
    };
    match writable(it) {
        Ok(folders) => walk.writable = folders,
        Err(error) => walk.unseen(format!(
            "The folders that sandboxed commands may write cannot be listed: {error}"
        )),
    }
    let around: BTreeSet<&PathBuf> = it.folders.iter().collect();
    for folder in around.into_iter().filter(|it| it.parent().is_some()) {
        walk.add(folder);
    }
    for (folder, beginnings) in beginnings(it.cwd, names) {
        walk.add_named(&folder, &beginnings);
    }
    while let Some(folder) = walk.pending.pop_front() {
        walk.look(&folder);
    }
    FolderState {
        sum: walk.sum.finalize().to_vec(),
        holds: walk.holds,
        unseen: walk.unseen,
    }
}

/// Returns every folder that sandboxed commands of this home may write, by its real path.
pub(super) fn writable(it: DigestInput<'_>) -> io::Result<Vec<PathBuf>> {
    let written = it.written.map(|it| it.all()).transpose()?;
    let (tmp, tmpdir) = scratch_folders();
    let scratch = [tmp].into_iter().chain(tmpdir).cloned();
    let folders = it.folders.iter().cloned().chain(scratch);
    let folders = folders.chain(written.into_iter().flatten());
    let real: BTreeSet<PathBuf> = folders.filter_map(|it| it.canonicalize().ok()).collect();
    Ok(real.into_iter().collect())
}

/// Returns the identity of a folder, independent of its name.
pub(super) fn identity(path: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(format!("{} {}", metadata.dev(), metadata.ino()).into_bytes())
}

/// Splits the paths of names into folders and prefixes of names in them: a shell may append
/// characters to a name, or expand a pattern in it.
fn beginnings(cwd: &str, names: &[&str]) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut prefixes_by_folder: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for name in names.iter().filter(|it| it.contains('/')) {
        let path = path(cwd.as_ref(), name);
        let text = path.to_string_lossy();
        let plain = text.split(['*', '?', '[']).next().unwrap_or_default();
        let (folder, beginning) = match plain.rsplit_once('/') {
            Some((_, "." | "..")) => (plain, ""),
            Some((folder, beginning)) => (folder, beginning),
            None => continue,
        };
        let folder = if folder.is_empty() { "/" } else { folder };
        let beginnings = prefixes_by_folder.entry(PathBuf::from(folder)).or_default();
        beginnings.insert(beginning.to_owned());
    }
    prefixes_by_folder
}

/// A breadth-first walk through folders.
#[derive(Default)]
struct FolderWalk<'a> {
    /// Names in the line.
    names: &'a [&'a str],
    /// Folders that sandboxed commands may write.
    writable: Vec<PathBuf>,
    /// Folders still to visit.
    pending: VecDeque<PathBuf>,
    /// Folders that were added before.
    added: BTreeSet<PathBuf>,
    count: usize,
    sum: Sha256,
    holds: Vec<PathBuf>,
    unseen: Option<String>,
}

impl FolderWalk<'_> {
    /// Adds everything in this folder that sandboxed commands can write.
    fn add(&mut self, folder: &Path) {
        let Ok(real) = folder.canonicalize() else {
            return;
        };
        let folders: Vec<PathBuf> = match self.is_writable(&real) {
            true => vec![real],
            false => {
                let below = self.writable.iter().filter(|it| it.starts_with(&real));
                below.cloned().collect()
            }
        };
        for folder in folders {
            if self.added.insert(folder.clone()) {
                self.pending.push_back(folder);
            }
        }
    }

    /// Adds the entries of this folder with one of these prefixes.
    fn add_named(&mut self, folder: &Path, beginnings: &BTreeSet<String>) {
        if beginnings.contains("") {
            return self.add(folder);
        }
        let Ok(real) = folder.canonicalize() else {
            return;
        };
        for path in self.list(&real) {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if beginnings.iter().any(|it| name.starts_with(it.as_bytes())) {
                self.look_at(&path);
                self.holds.extend(path.is_file().then_some(path));
            }
        }
    }

    /// Visits a folder by its real path.
    fn look(&mut self, folder: &Path) {
        self.holds.push(folder.join("*"));
        for path in self.list(folder) {
            self.look_at(&path);
        }
    }

    fn look_at(&mut self, path: &Path) {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) => return self.cannot_see(path, &error),
        };
        if metadata.is_dir() {
            // Only the files of a folder are part of the digest. Sandboxed commands create and
            // remove empty folders all the time.
            if !self.is_busy(path) {
                self.add(path);
            }
            return;
        }
        let folder = path.parent().unwrap_or(path);
        if !self.is_writable(folder) {
            return;
        }
        self.sum.update(state(&metadata));
        if metadata.is_symlink() {
            let target = std::fs::read_link(path).unwrap_or_default();
            self.sum.update(target.as_os_str().as_encoded_bytes());
            let target = path.metadata().ok();
            let is_folder = target.as_ref().is_some_and(Metadata::is_dir);
            if is_folder && !self.is_busy(path) {
                self.add(path);
            }
            let target = target.filter(|_| !is_folder);
            self.sum
                .update(target.as_ref().map(state).unwrap_or_default());
        }
        self.sum.update(path.as_os_str().as_encoded_bytes());
        self.sum.update([0]);
    }

    /// Lists the paths in a folder.
    fn list(&mut self, folder: &Path) -> Vec<PathBuf> {
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) => {
                self.cannot_see(folder, &error);
                return Vec::new();
            }
        };
        let remaining = ENTRIES_MAX - self.count;
        let mut paths: Vec<PathBuf> = entries
            .take(remaining + 1)
            .flatten()
            .map(|it| it.path())
            .collect();
        if paths.len() > remaining {
            self.unseen(format!(
                "It could run any of more than {ENTRIES_MAX} files, up to {}",
                folder.display()
            ));
            paths.truncate(remaining);
        }
        self.count += paths.len();
        paths.retain(|it| !is_dotfile_of_home(it));
        paths.sort();
        paths
    }

    /// Records that a file or folder cannot be read. A folder of another user does not matter:
    /// sandboxed commands have the server's rights and cannot open it either.
    fn cannot_see(&mut self, path: &Path, error: &io::Error) {
        let folder = if path.is_dir() {
            Some(path)
        } else {
            path.parent()
        };
        let metadata = folder.and_then(|it| it.metadata().ok());
        let is_ours = metadata.is_none_or(|it| it.uid() == geteuid().as_raw());
        if error.kind() != ErrorKind::NotFound && is_ours {
            self.unseen(format!(
                "It could run any file, and {} cannot be read: {error}",
                path.display()
            ));
        }
    }

    fn unseen(&mut self, why: String) {
        self.unseen.get_or_insert(why);
    }

    fn is_writable(&self, real: &Path) -> bool {
        self.writable.iter().any(|it| real.starts_with(it))
    }

    /// Whether tools write this folder all the time, and the line does not name it.
    fn is_busy(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut parts = self.names.iter().flat_map(|it| it.split('/'));
        BUSY.split_whitespace().any(|it| it == name) && !parts.any(|it| it == name)
    }
}

/// Whether it is a dotfile of the user's home: programs write them all the time, and sandboxed
/// commands cannot.
fn is_dotfile_of_home(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".") && path.parent() == std::env::home_dir().as_deref()
}

fn state(metadata: &Metadata) -> String {
    format!(
        "{} {} {} {} {} {} {}\0",
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec()
    )
}
