//! Liveness of nodes: a lock file for each node, which the operating system releases when the node
//! dies.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// Maximum attempts to take a lock while other processes only test it.
const ATTEMPTS_MAX: u32 = 100;

/// Minimum age of a lock file before it is removed: its node may be about to lock it.
const FRESH: Duration = Duration::from_secs(60);

/// A node's lock, held until it is dropped.
#[derive(Debug)]
pub struct NodeLock {
    path: PathBuf,
    /// Closing it releases the lock, even when the process is killed.
    _file: File,
}

/// Reason why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A live node has this name.
    #[error("a live node has the name {0}")]
    Alive(String),
    /// The name contains invalid characters, is empty, or is too long.
    #[error("{0:?} is not a valid node name: use 1 to 100 letters, digits, `-` or `_`")]
    BadName(String),
    /// The file cannot be created or locked.
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
                // A lock on a removed file excludes no other process.
                Ok(()) if is_at(&file, &path) => return Ok(Self { path, _file: file }),
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::yield_now(),
                Err(error) => return Err(NodeError::Io(error.into())),
            }
        }
        Err(NodeError::Alive(name.to_owned()))
    }

    /// Returns the path of the socket on which a node of this name listens for its peers.
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

    /// Returns the names of the live nodes that have the journal in a folder open.
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

/// Whether any process holds a lock.
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
        // Removed while the lock is held, so that no other process can have taken it. A file that
        // stays is harmless.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the files of killed nodes. Such a name is never taken again, and a missing file means
/// the same as an unlocked one. So errors are ignored.
fn sweep(nodes: &Path) {
    let Ok(entries) = fs::read_dir(nodes) else {
        return;
    };
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| is_lock(path)) {
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let modified = file.metadata().and_then(|it| it.modified()).ok();
        if modified.is_none_or(|modified| modified.elapsed().is_ok_and(|age| age < FRESH)) {
            continue;
        }
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if locked.is_ok() && is_at(&file, &path) {
            // Removed while the lock is held, so that no other process can have taken it.
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
    let (Ok(opened), Ok(linked)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (linked.dev(), linked.ino())
}
