//! Removal of whole folders, of any depth, with two descriptors at a time. What goes down a tree with one
//! descriptor for each level lets a deep tree take all that the server has.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dev, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// A folder that is being emptied: a link in its place is not followed.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Which folder it is, by whatever name.
type Identity = (Dev, u64);

/// Opens a folder of another, to be emptied.
pub(super) fn open_folder(around: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(openat(around, name, FOLDER, Mode::empty())?)
}

/// Removes a folder of another, which is open already, and all that is in it. Links are removed, not followed.
pub(super) fn remove_folder(around: &OwnedFd, name: &OsStr, folder: OwnedFd) -> io::Result<()> {
    let mut here = folder;
    // The folders above this one up to the first, and the name of what was gone into.
    let mut above: Vec<(Identity, CString)> = Vec::new();
    loop {
        if let Some(name) = empty_until_folder(&here)? {
            let inside = match openat(&here, &*name, FOLDER, Mode::empty()) {
                Ok(inside) => inside,
                // It has gone or become something else meanwhile: looked at again.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(error.into()),
            };
            above.push((identity(&here)?, name));
            here = inside;
            continue;
        }
        let Some((parent, name)) = above.pop() else {
            break;
        };
        let outside = openat(&here, c"..", FOLDER, Mode::empty())?;
        // Who moves a folder away while it is removed must not have us remove things elsewhere.
        if identity(&outside)? != parent {
            return Err(io::Error::other(
                "a folder was moved while it was removed; try again",
            ));
        }
        here = outside;
        remove(&here, &name, AtFlags::REMOVEDIR)?;
    }
    Ok(unlinkat(around, name, AtFlags::REMOVEDIR)?)
}

/// Removes what is in a folder up to the first folder in it that is not empty; says which that is.
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

/// Not every file system says what its entries are.
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

/// Removes one thing; one that has gone already is removed too.
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
