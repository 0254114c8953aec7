//! JSON files of the home that only their owner can read, and that several processes write.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A JSON file that holds credentials. Cheap to clone; each method blocks on the disk.
#[derive(Clone, Debug)]
pub struct PrivateFile {
    path: PathBuf,
    log_in: &'static str,
}

/// Reason why a file of credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateFileError {
    /// Its lock cannot be taken.
    #[error("cannot lock {}", .path.display())]
    Lock {
        /// Path of the lock.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It has an unknown form. The error of the parser could quote a secret, so it is not a source.
    #[error("{} cannot be read; remove it, and log in again with `{log_in}`", .path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Command that creates the credentials again.
        log_in: &'static str,
    },
    /// It cannot be written.
    #[error("cannot write {}", .path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl PrivateFile {
    /// Returns the file with this path. `log_in` is the command that creates its credentials again.
    pub fn new(path: PathBuf, log_in: &'static str) -> Self {
        Self { path, log_in }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks out other writers until the lock is dropped.
    pub fn lock(&self) -> Result<File, PrivateFileError> {
        let path = self.path.with_extension("lock");
        let locked = private(&path).and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| PrivateFileError::Lock { path, source })
    }

    /// Takes the lock that has this extension, until it is dropped. Returns `None` while another
    /// process holds it.
    pub fn try_lock(&self, extension: &str) -> Result<Option<File>, PrivateFileError> {
        let path = self.path.with_extension(extension);
        let locked = private(&path).and_then(|file| match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        });
        locked.map_err(|source| PrivateFileError::Lock { path, source })
    }

    /// Reads the content; that of a missing file is empty.
    pub fn read<T: DeserializeOwned + Default>(&self) -> Result<T, PrivateFileError> {
        let path = || self.path.clone();
        match fs::read(&self.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| PrivateFileError::Malformed {
                path: path(),
                log_in: self.log_in,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
            Err(source) => Err(PrivateFileError::Read {
                path: path(),
                source,
            }),
        }
    }

    /// Replaces the content. Readers see the old content or the new one.
    pub fn write<T: Serialize>(&self, content: &T) -> Result<(), PrivateFileError> {
        let written = self.try_write(content);
        written.map_err(|source| PrivateFileError::Write {
            path: self.path.clone(),
            source,
        })
    }

    fn try_write<T: Serialize>(&self, content: &T) -> io::Result<()> {
        let new = self.path.with_extension("new");
        // A leftover file may be readable by other users.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private(&new)?;
        file.write_all(serde_json::to_string_pretty(content)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

/// Opens a file that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path)
}
