//! Removal of whole folders, of any depth, with two descriptors at a time. With one descriptor for
//! each level, a deep tree would use up all descriptors of the server.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dev, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// Flags to open a folder that is being emptied: a link in its place is not followed.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Identity of a folder under any name.
type Identity = (Dev, u64);

/// Opens a folder inside another, to be emptied.
pub(super) fn open_folder(outer: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(outer, name, FOLDER, Mode::empty())?)
}

/// Removes an open folder inside another, and all its contents. Links are removed, not followed.
pub(super) fn remove_folder(outer: &OwnedFd, name: &OsStr, folder: OwnedFd) -> io::Result<()> {
    let mut current = folder;
    // The folders above this one up to the first, each with the name that was entered from it.
    let mut ancestors: Vec<(Identity, CString)> = Vec::new();
    loop {
        if let Some(name) = empty_until_folder(&current)? {
            let child = match openat(&current, &*name, FOLDER, Mode::empty()) {
                Ok(child) => child,
                // It is gone or is no folder any more: reads the entries again.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(error.into()),
            };
            ancestors.push((identity(&current)?, name));
            current = child;
            continue;
        }
        let Some((parent_identity, name)) = ancestors.pop() else {
            break;
        };
        let parent_folder = openat(&current, c"..", FOLDER, Mode::empty())?;
        // Moving a folder away during its removal must not make the server remove other files.
        if identity(&parent_folder)? != parent_identity {
            return Err(io::Error::other(
                "a folder was moved while it was removed; try again",
            ));
        }
        current = parent_folder;
        remove(&current, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(unlinkat(outer, name, AtFlags::REMOVEDIR)?)
}

/// Removes the contents of a folder up to the first folder in it that is not empty; returns that
/// one.
fn empty_until_folder(folder: &OwnedFd) -> io::Result<Option<CString>> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if !is_folder(folder, name, entry.file_type())? {
            remove(folder, name, AtFlags::empty())?;
            continue;
        }
        match remove(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Some(name.to_owned())),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Whether an entry is a folder. Not every file system says what its entries are.
fn is_folder(folder: &OwnedFd, name: &CStr, kind: FileType) -> io::Result<bool> {
    if kind != FileType::Unknown {
        return Ok(kind == FileType::Directory);
    }
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes one entry; a missing one counts as removed.
fn remove(folder: &OwnedFd, name: &CStr, flags: AtFlags) -> Result<(), Errno> {
    match unlinkat(folder, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn identity(folder: &OwnedFd) -> io::Result<Identity> {
    let stat = fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}
