//! The entries of the disk as a restore sees and changes them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, fstat, mkdirat, openat, renameat, renameat_with,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::error::is_absent;
use crate::opened::{kind_of, open_file, open_folder, open_parent, read_link, stat_entry};
use crate::store::Store;
use crate::{ContentHash, EntryKind, Error, FileEntry, WorkspacePath};

/// Occupant of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupant {
    Nothing,
    Leaf(FileEntry),
    /// A folder, or an entry that is neither a file nor a link.
    Other,
}

impl Occupant {
    /// Reports whether this is the state; folders count as nothing, because they come and go with
    /// what is in them.
    pub fn is(self, entry: Option<FileEntry>) -> bool {
        match self {
            Self::Nothing => entry.is_none(),
            Self::Leaf(now) => Some(now) == entry,
            Self::Other => false,
        }
    }
}

/// Returns what is at a path of the workspace.
pub(super) fn occupant(root: &OwnedFd, path: &WorkspacePath) -> io::Result<Occupant> {
    match open_parent(root, path) {
        Ok(folder) => occupant_of(&folder, path.name()),
        Err(error) if is_absent(error) => Ok(Occupant::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Returns what an entry of a folder is, and the hash of its content.
pub(super) fn occupant_of(folder: impl AsFd, name: &[u8]) -> io::Result<Occupant> {
    let stat = match stat_entry(&folder, name) {
        Ok(stat) => stat,
        Err(error) if is_absent(error) => return Ok(Occupant::Nothing),
        Err(error) => return Err(error.into()),
    };
    let entry = match kind_of(&stat) {
        Some(EntryKind::Symlink) => {
            let target = read_link(folder, name)?;
            FileEntry {
                kind: EntryKind::Symlink,
                mode: 0,
                size: target.len() as u64,
                hash: ContentHash::of(&target),
            }
        }
        Some(EntryKind::File) => {
            let (mut file, stat) = open_file(folder, name)?;
            let mut hasher = Sha256::new();
            let mut buffer = vec![0; 1 << 16];
            let mut size = 0;
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    count => {
                        hasher.update(&buffer[..count]);
                        size += count as u64;
                    }
                }
            }
            FileEntry {
                kind: EntryKind::File,
                mode: stat.st_mode & 0o777,
                size,
                hash: ContentHash::from_bytes(hasher.finalize().into()),
            }
        }
        _ => return Ok(Occupant::Other),
    };
    Ok(Occupant::Leaf(entry))
}

/// Writes a file or link into a folder. A file has its name only when it is complete and durable.
pub(super) fn write_entry(
    store: &Store,
    folder: &OwnedFd,
    name: &str,
    entry: &FileEntry,
) -> Result<(), Error> {
    let disk = |it: io::Error| Error::disk(name.as_ref(), it);
    if entry.kind == EntryKind::Symlink {
        let target = store.read(&entry.hash)?;
        let linked = symlinkat(OsStr::from_bytes(&target), folder, name);
        return linked.map_err(|it| disk(it.into()));
    }
    let part = format!("{name}.part");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(folder, &part, flags, Mode::from_raw_mode(0o600));
    let mut file = File::from(opened.map_err(|it| disk(it.into()))?);
    let written = store.copy(&entry.hash, &mut file).and_then(|()| {
        let written = file
            .flush()
            .and_then(|()| Ok(fchmod(&file, Mode::from_raw_mode(entry.mode))?))
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(renameat(folder, &part, folder, name)?));
        written.map_err(disk)
    });
    if written.is_err() {
        // A part of a large file would keep a full disk full.
        let _ = unlinkat(folder, &part, AtFlags::empty());
    }
    written
}

/// Exchanges two entries, or moves the first where the system cannot exchange.
pub(super) fn exchange(
    (from, from_name): (&OwnedFd, &str),
    (to, to_name): (&OwnedFd, &[u8]),
) -> Result<(), Errno> {
    let to_name = OsStr::from_bytes(to_name);
    match renameat_with(from, from_name, to, to_name, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            renameat(from, from_name, to, to_name)
        }
        exchanged => exchanged,
    }
}

/// Moves an entry to a name that must be free.
pub(super) fn move_to_free(
    (from, from_name): (&OwnedFd, &[u8]),
    (to, to_name): (&OwnedFd, &[u8]),
) -> Result<(), Errno> {
    let (from_name, to_name) = (OsStr::from_bytes(from_name), OsStr::from_bytes(to_name));
    match renameat_with(from, from_name, to, to_name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match stat_entry(to, to_name.as_bytes()) {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => renameat(from, from_name, to, to_name),
                Err(error) => Err(error),
            }
        }
        moved => moved,
    }
}

/// Name of a folder in the staging folder, before it is moved to its place. Files have numbers.
const STAGED_FOLDER: &str = "folder";

/// Permissions that the owner needs to put files into a folder.
const OWNER: u32 = 0o700;

/// Makes a folder with this mode and the permissions that its owner needs, unless it exists. It has
/// its name only when it has its mode, so that the death of the process leaves no other one.
pub(super) fn make_folder(
    (root, staging): (&OwnedFd, &OwnedFd),
    path: &WorkspacePath,
    mode: u32,
) -> Result<(), Errno> {
    let parent = open_parent(root, path)?;
    match stat_entry(&parent, path.name()) {
        Ok(_) => return Ok(()),
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    mkdirat(staging, STAGED_FOLDER, Mode::from_raw_mode(OWNER))?;
    let made = open_folder(staging, STAGED_FOLDER.as_bytes())?;
    fchmod(&made, Mode::from_raw_mode(mode | OWNER))?;
    match move_to_free((staging, STAGED_FOLDER.as_bytes()), (&parent, path.name())) {
        Err(Errno::EXIST | Errno::NOTEMPTY) => unlinkat(staging, STAGED_FOLDER, AtFlags::REMOVEDIR),
        moved => moved,
    }
}

/// Gives the owner of a folder the permissions to change what is in it, if the folder has this mode.
pub(super) fn unlock_folder(root: &OwnedFd, path: &WorkspacePath, mode: u32) -> Result<(), Errno> {
    change_mode(root, path, mode, mode | OWNER)
}

/// Takes back what [`unlock_folder`] gave, or [`make_folder`].
pub(super) fn lock_folder(root: &OwnedFd, path: &WorkspacePath, mode: u32) -> Result<(), Errno> {
    change_mode(root, path, mode | OWNER, mode)
}

/// Changes the mode of a folder, if it is there with the one mode.
fn change_mode(root: &OwnedFd, path: &WorkspacePath, from: u32, to: u32) -> Result<(), Errno> {
    if from == to {
        return Ok(());
    }
    let opened = open_parent(root, path).and_then(|it| open_folder(it, path.name()));
    let folder = match opened {
        Ok(folder) => folder,
        Err(error) if is_absent(error) => return Ok(()),
        Err(error) => return Err(error),
    };
    match fstat(&folder)?.st_mode & 0o777 == from {
        true => fchmod(&folder, Mode::from_raw_mode(to)),
        false => Ok(()),
    }
}

/// Removes a folder if it is there and empty.
pub(super) fn remove_folder(root: &OwnedFd, path: &WorkspacePath) -> Result<(), Errno> {
    let removed = open_parent(root, path)
        .and_then(|it| unlinkat(it, OsStr::from_bytes(path.name()), AtFlags::REMOVEDIR));
    match removed {
        // Its content belongs to the user.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(error) if is_absent(error) => Ok(()),
        removed => removed,
    }
}

/// Removes a file, a link or an empty folder.
pub(super) fn remove_entry(folder: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let name = OsStr::from_bytes(name);
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => unlinkat(folder, name, AtFlags::REMOVEDIR),
        removed => removed,
    }
}
