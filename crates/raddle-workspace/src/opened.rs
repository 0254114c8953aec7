//! Steps from folder to folder that no symbolic link can divert.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::{EntryKind, WorkspacePath};

/// Opens a folder in a folder. A symbolic link there is an error.
pub(crate) fn open_folder(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, OsStr::from_bytes(name), flags, Mode::empty())
}

/// Opens the folder of a path, step by step from the workspace.
pub(crate) fn open_parent(root: &OwnedFd, path: &WorkspacePath) -> Result<OwnedFd, Errno> {
    let Some(parent) = path.parent() else {
        return open_folder(root, b".");
    };
    let mut steps = parent.components();
    let first = steps.next().unwrap_or(b".");
    steps.try_fold(open_folder(root, first)?, open_folder)
}

/// Returns the attributes of an entry itself, not of what a link names.
pub(crate) fn stat_entry(folder: impl AsFd, name: &[u8]) -> Result<Stat, Errno> {
    statat(folder, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW)
}

/// Returns the kind of an entry; `None` for pipes, sockets and devices.
pub(crate) fn kind_of(stat: &Stat) -> Option<EntryKind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Some(EntryKind::File),
        FileType::Symlink => Some(EntryKind::Symlink),
        FileType::Directory => Some(EntryKind::Folder),
        _ => None,
    }
}

/// Opens a regular file for reading. Should a pipe or a device have taken its place, opening
/// neither waits nor returns it.
pub(crate) fn open_file(folder: impl AsFd, name: &[u8]) -> Result<(File, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let name = OsStr::from_bytes(name);
    let opened = openat(folder, name, flags | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&opened)?;
    match kind_of(&stat) {
        Some(EntryKind::File) => Ok((File::from(opened), stat)),
        _ => Err(Errno::INVAL),
    }
}

/// Reads a small regular file of known purpose; `None` if there is none or it is larger.
pub(crate) fn read_small(folder: impl AsFd, name: &[u8], bytes_max: u64) -> Option<Vec<u8>> {
    let (file, stat) = open_file(folder, name).ok()?;
    let size = u64::try_from(stat.st_size).ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).ok()?;
    (size <= bytes_max && bytes.len() as u64 <= bytes_max).then_some(bytes)
}

/// Returns the target of a symbolic link.
pub(crate) fn read_link(folder: impl AsFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let target = readlinkat(folder, OsStr::from_bytes(name), Vec::new())?;
    Ok(target.into_bytes())
}
