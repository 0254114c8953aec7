//! A unix socket in the file system: its path, creation, lock and ownership.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::net::{UnixListener, UnixStream};

/// Maximum length of a path in a socket address.
const ADDRESS_BYTES_MAX: usize = 107;

/// A socket file of this server. Dropping it removes the file, unless another file has replaced it.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode, which identify the file of this server.
    identity: Option<(u64, u64)>,
    /// Held as long as the socket is in use. The lock file is not removed: otherwise two servers
    /// could hold two locks with the same name.
    _lock: File,
}

/// Reason why the socket could not be claimed.
#[derive(Debug)]
pub(crate) enum SocketError {
    /// Another server uses it.
    InUse,
    /// It cannot be created.
    Unusable(io::Error),
}

impl From<io::Error> for SocketError {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error)
    }
}

impl SocketFile {
    /// Creates the socket, accessible to its owner only. Replaces the stale socket of a killed
    /// server.
    pub(crate) async fn claim(path: &Path) -> Result<(Self, UnixListener), SocketError> {
        make_private_folder(path)?;
        // From here on, no other server checks, removes or creates this socket.
        let lock = lock(path)?;
        match UnixStream::connect(path).await {
            Ok(_) => return Err(SocketError::InUse),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => {}
                // No listener: the file is a stale socket, or not a socket at all.
                Some(Errno::CONNREFUSED) => remove_stale(path)?,
                // A listener exists, but its backlog is full.
                Some(Errno::AGAIN) => return Err(SocketError::InUse),
                _ => return Err(error.into()),
            },
        }
        let listener = UnixListener::bind(path)?;
        let socket = Self {
            path: path.to_owned(),
            identity: identity(path),
            _lock: lock,
        };
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok((socket, listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A path that fits into a socket address.
pub(crate) struct SocketPath {
    pub(crate) path: PathBuf,
    /// The folder, kept open while the path refers to its descriptor.
    _folder: Option<File>,
}

impl SocketPath {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(no_file_name());
        };
        if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES_MAX {
            return Ok(Self {
                path: path.to_owned(),
                _folder: None,
            });
        }
        let folder = File::open(folder)?;
        let fd_path = format!("/proc/self/fd/{}", folder.as_raw_fd());
        Ok(Self {
            path: Path::new(&fd_path).join(name),
            _folder: Some(folder),
        })
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let device_and_inode = |metadata: Metadata| (metadata.dev(), metadata.ino());
    std::fs::symlink_metadata(path).ok().map(device_and_inode)
}

/// Locks the lock file of the socket, in the same folder.
fn lock(socket: &Path) -> Result<File, SocketError> {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(&path)
        .map_err(|error| {
            let path = Path::new(&path).display();
            io::Error::new(error.kind(), format!("cannot open {path}: {error}"))
        })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(SocketError::InUse),
        Err(error) => Err(SocketError::Unusable(error.into())),
    }
}

/// Creates the socket's folder, accessible to its owner only. An existing folder must have these
/// permissions already.
fn make_private_folder(socket: &Path) -> io::Result<()> {
    let folder = match socket.parent() {
        // A bare name is in the current directory.
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(no_file_name()),
    };
    if !folder.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let metadata = std::fs::metadata(folder)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!(
            "its folder {} belongs to another user; use a folder of your own",
            folder.display()
        )));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "its folder {} is accessible to others (mode {mode:04o}); chmod 700 it, or name a folder that does not exist yet",
            folder.display()
        )));
    }
    Ok(())
}

fn no_file_name() -> io::Error {
    io::Error::other("the path of the socket has no file name; name a file and not its folder")
}

/// Removes the stale socket of a killed server. Other files are kept.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::other(
            "the path exists and is not a socket; move the file away, or name another path",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
