//! A unix socket in the file system: who may have it, and whose it is.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::net::{UnixListener, UnixStream};

/// A socket that is ours. Dropping it removes it, unless someone has put something else in its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode: what is at the path is ours if these are.
    identity: Option<(u64, u64)>,
    /// Held for as long as the socket is ours. The file stays: removing it would let two servers
    /// hold two locks of the same name.
    _lock: File,
}

/// Why a socket is not ours.
#[derive(Debug)]
pub(crate) enum SocketError {
    /// Another server has it.
    InUse,
    /// It cannot be made.
    Unusable(io::Error),
}

impl From<io::Error> for SocketError {
    fn from(error: io::Error) -> Self {
        Self::Unusable(error)
    }
}

impl SocketFile {
    /// Makes the socket, for its owner only, in place of one that a killed server left behind.
    pub(crate) async fn claim(path: &Path) -> Result<(Self, UnixListener), SocketError> {
        make_private_folder(path)?;
        // From here on, no other server looks at, removes or makes this socket.
        let lock = lock(path)?;
        match UnixStream::connect(path).await {
            Ok(_) => return Err(SocketError::InUse),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => {}
                // Nobody listens: it is stale, or no socket at all.
                Some(Errno::CONNREFUSED) => remove_stale(path)?,
                // Someone listens, and is too busy to answer.
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

fn identity(path: &Path) -> Option<(u64, u64)> {
    let of = |metadata: Metadata| (metadata.dev(), metadata.ino());
    std::fs::symlink_metadata(path).ok().map(of)
}

/// Takes the lock beside the socket.
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

/// Makes the socket's folder, for its owner only. One that exists must be like that already.
fn make_private_folder(socket: &Path) -> io::Result<()> {
    let folder = match socket.parent() {
        // A bare name is in the folder we are in.
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io::Error::other("that is not the name of a socket")),
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
            "its folder {} belongs to someone else; use a folder of your own",
            folder.display()
        )));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "its folder {} lets others in (mode {mode:04o}); chmod 700 it, or name a folder that is not there yet",
            folder.display()
        )));
    }
    Ok(())
}

/// Removes what a killed server left behind; anything that is not a socket stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::other(
            "something that is not a socket is in the way",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
