//! The state of folders with all that is in them: what counts where any of their files could be run.
//!
//! Only what the system tells of each file counts, because reading all of them would take too long. A
//! sandboxed command cannot choose the time at which the system saw a file change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use raddle_sandbox::scratch_folders;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::DigestInput;
use super::named_files::path;

/// The most files and folders that count.
const ENTRIES_MAX: usize = 262_144;

/// Folders that are full of what tools write all the time. They count only where the line names them.
const BUSY: &str = ".cache .git .gradle .mypy_cache .next .pytest_cache .raddle .venv __pycache__ build dist \
    node_modules target venv";

/// The state of folders.
pub(super) struct FolderState {
    /// The sum over every file in them.
    pub(super) sum: Vec<u8>,
    /// Names in each folder, where nothing is. A hold on them keeps sandboxed commands from writing in the
    /// folders.
    pub(super) holds: Vec<PathBuf>,
    /// The reason why the sum does not cover every file, for the model and the user.
    pub(super) unseen: Option<String>,
}

/// Looks at the folders of a line and of its thread, and at every other folder that sandboxed commands can write as
/// far as `names`, those of the line, or links lead there.
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
    while let Some(folder) = walk.ahead.pop_front() {
        walk.look(&folder);
    }
    FolderState {
        sum: walk.sum.finalize().to_vec(),
        holds: walk.holds,
        unseen: walk.unseen,
    }
}

/// Every folder that sandboxed commands of this home may write, by its real path.
pub(super) fn writable(it: DigestInput<'_>) -> io::Result<Vec<PathBuf>> {
    let written = it.written.map(|it| it.all()).transpose()?;
    let (tmp, tmpdir) = scratch_folders();
    let scratch = [tmp].into_iter().chain(tmpdir).cloned();
    let folders = it.folders.iter().cloned().chain(scratch);
    let folders = folders.chain(written.into_iter().flatten());
    let real: BTreeSet<PathBuf> = folders.filter_map(|it| it.canonicalize().ok()).collect();
    Ok(real.into_iter().collect())
}

/// The paths that names lead to, as folders and the beginnings of names in them: a shell may put more letters behind
/// a name, or make others of a pattern in it.
fn beginnings(cwd: &str, names: &[&str]) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut found: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
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
        let beginnings = found.entry(PathBuf::from(folder)).or_default();
        beginnings.insert(beginning.to_owned());
    }
    found
}

/// A walk through folders, the nearest to the top first.
#[derive(Default)]
struct FolderWalk<'a> {
    /// The names of the line.
    names: &'a [&'a str],
    /// Every folder that sandboxed commands may write.
    writable: Vec<PathBuf>,
    /// Folders that are still to be looked at.
    ahead: VecDeque<PathBuf>,
    /// Those that were added before.
    added: BTreeSet<PathBuf>,
    count: usize,
    sum: Sha256,
    holds: Vec<PathBuf>,
    unseen: Option<String>,
}

impl FolderWalk<'_> {
    /// Adds what sandboxed commands can write in this folder.
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
                self.ahead.push_back(folder);
            }
        }
    }

    /// Adds what in this folder begins so.
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

    /// Looks at a folder by its real path.
    fn look(&mut self, folder: &Path) {
        self.holds.push(folder.join("*"));
        for path in self.list(folder) {
            self.look_at(&path);
        }
    }

    fn look_at(&mut self, path: &Path) {
        let about = match path.symlink_metadata() {
            Ok(about) => about,
            Err(error) => return self.cannot_see(path, &error),
        };
        if about.is_dir() {
            // It counts by its files. Empty ones come and go with commands in the sandbox.
            if !self.is_busy(path) {
                self.add(path);
            }
            return;
        }
        let folder = path.parent().unwrap_or(path);
        if !self.is_writable(folder) {
            return;
        }
        self.sum.update(state(&about));
        if about.is_symlink() {
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

    /// The paths in a folder.
    fn list(&mut self, folder: &Path) -> Vec<PathBuf> {
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) => {
                self.cannot_see(folder, &error);
                return Vec::new();
            }
        };
        let left = ENTRIES_MAX - self.count;
        let mut paths: Vec<PathBuf> = entries
            .take(left + 1)
            .flatten()
            .map(|it| it.path())
            .collect();
        if paths.len() > left {
            self.unseen(format!(
                "It could run any of more than {ENTRIES_MAX} files, up to {}",
                folder.display()
            ));
            paths.truncate(left);
        }
        self.count += paths.len();
        paths.retain(|it| !is_dotfile_of_home(it));
        paths.sort();
        paths
    }

    /// Notes that a file or folder cannot be looked at. One in a folder that is not ours is no matter: sandboxed
    /// commands have our rights and cannot open it either.
    fn cannot_see(&mut self, path: &Path, error: &io::Error) {
        let folder = if path.is_dir() {
            Some(path)
        } else {
            path.parent()
        };
        let about = folder.and_then(|it| it.metadata().ok());
        let is_ours = about.is_none_or(|it| it.uid() == geteuid().as_raw());
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

    /// Whether it is a folder that tools write all the time and that the line does not name.
    fn is_busy(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut parts = self.names.iter().flat_map(|it| it.split('/'));
        BUSY.split_whitespace().any(|it| it == name) && !parts.any(|it| it == name)
    }
}

/// Whether it is a dotfile of the user's home: programs write them all the time, and sandboxed commands cannot.
fn is_dotfile_of_home(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".") && path.parent() == std::env::home_dir().as_deref()
}

fn state(about: &Metadata) -> String {
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
