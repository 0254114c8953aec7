//! Who is alive: a lock file per node, which the system lets go of when the node dies.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// How often taking a lock is tried while others only look whether it is held.
const ATTEMPTS_MAX: u32 = 100;

/// A lock file is left alone for this long after it was made: its node may be about to take it.
const FRESH: Duration = Duration::from_secs(60);

/// A node's own lock, held as long as this lives.
#[derive(Debug)]
pub struct NodeLock {
    path: PathBuf,
    /// Closing it lets go of the lock, also when the process is killed.
    _file: File,
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A live node has this name.
    #[error("a live node has the name {0}")]
    Alive(String),
    /// A name is one part of a path.
    #[error("{0:?} is no name for a node")]
    BadName(String),
    /// The file cannot be made or locked.
    #[error("the lock of a node cannot be taken")]
    Io(#[from] io::Error),
}

impl NodeLock {
    /// Takes the lock of a name in a journal's folder.
    pub fn take(folder: &Path, name: &str) -> Result<Self, NodeError> {
        let path = path(folder, name)?;
        let nodes = folder.join("nodes");
        fs::create_dir_all(&nodes)?;
        sweep(&nodes);
        for _ in 0..ATTEMPTS_MAX {
            let mut options = fs::OpenOptions::new();
            options.create(true).truncate(false).write(true);
            let file = options.open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // A file that was removed meanwhile locks nobody out.
                Ok(()) if is_at(&file, &path) => return Ok(Self { path, _file: file }),
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::yield_now(),
                Err(error) => return Err(NodeError::Io(error.into())),
            }
        }
        Err(NodeError::Alive(name.to_owned()))
    }

    /// Where a node of this name is spoken to by the others.
    pub fn socket_path(folder: &Path, name: &str) -> Result<PathBuf, NodeError> {
        Ok(path(folder, name)?.with_extension("sock"))
    }

    /// Whether a node of this name is alive.
    pub fn is_alive(folder: &Path, name: &str) -> Result<bool, NodeError> {
        Ok(is_held(&path(folder, name)?)?)
    }

    /// Whether any node is alive that has the journal in a folder open.
    pub fn is_any_alive(folder: &Path) -> Result<bool, NodeError> {
        Ok(!Self::alive(folder)?.is_empty())
    }

    /// The names of the nodes that are alive and have the journal in a folder open.
    pub fn alive(folder: &Path) -> Result<Vec<String>, NodeError> {
        let entries = match fs::read_dir(folder.join("nodes")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut alive = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_stem().and_then(|name| name.to_str());
            if let Some(name) = name.filter(|_| is_lock(&path))
                && is_held(&path)?
            {
                alive.push(name.to_owned());
            }
        }
        Ok(alive)
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "lock")
}

/// Whether someone holds a lock.
fn is_held(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

impl Drop for NodeLock {
    fn drop(&mut self) {
        // While it is still held, so that nobody can have taken it. Left behind it does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what nodes left behind that were killed. Nobody takes such a name again, and to be gone says
/// the same as to be held by nobody, so it does not matter what goes wrong here.
fn sweep(nodes: &Path) {
    let Ok(entries) = fs::read_dir(nodes) else {
        return;
    };
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| is_lock(path)) {
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let made = file.metadata().and_then(|it| it.modified()).ok();
        if made.is_none_or(|made| made.elapsed().is_ok_and(|age| age < FRESH)) {
            continue;
        }
        let taken = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if taken.is_ok() && is_at(&file, &path) {
            // While it is held, so that nobody can have taken it.
            let _ = fs::remove_file(path.with_extension("sock"));
            let _ = fs::remove_file(&path);
        }
    }
}

fn path(folder: &Path, name: &str) -> Result<PathBuf, NodeError> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        return Err(NodeError::BadName(name.to_owned()));
    }
    Ok(folder.join("nodes").join(format!("{name}.lock")))
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(named)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (held.dev(), held.ino()) == (named.dev(), named.ino())
}
