//! Steps from folder to folder that no symbolic link can divert.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2, readlinkat,
    statat,
};
use rustix::io::Errno;

use crate::{EntryKind, Error, WorkspacePath};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the folder of a workspace. Fails with [`Error::Link`] if a symbolic link is on its path.
pub(crate) fn open_workspace(path: &Path) -> Result<OwnedFd, Error> {
    open_root(path).map_err(|it| match it {
        Errno::LOOP => Error::Link(path.to_owned()),
        error => Error::disk(path, error),
    })
}

/// Opens the folder of a workspace. A symbolic link anywhere on the path is [`Errno::LOOP`].
fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    let rules = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    // With the flag, a link at the end would be no folder instead of a link.
    let flags = FOLDER.difference(OFlags::NOFOLLOW);
    match openat2(CWD, path, flags, Mode::empty(), rules) {
        // The kernel lacks the call, a filter refuses it, or the path is too long for one call.
        Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => open_root_by_names(path),
        opened => opened,
    }
}

/// Opens the folder of a workspace name by name. The folders above it need not be readable.
fn open_root_by_names(path: &Path) -> Result<OwnedFd, Errno> {
    let step = FOLDER.union(OFlags::PATH);
    let mut folder = openat(CWD, ".", step, Mode::empty())?;
    for component in path.components() {
        if component == Component::CurDir {
            continue;
        }
        let name = component.as_os_str();
        folder = match openat(&folder, name, step, Mode::empty()) {
            Err(Errno::NOTDIR) if is_link(&folder, name) => return Err(Errno::LOOP),
            opened => opened?,
        };
    }
    open_folder(folder, b".")
}

fn is_link(folder: impl AsFd, name: &OsStr) -> bool {
    stat_entry(folder, name.as_bytes()).is_ok_and(|it| kind_of(&it) == Some(EntryKind::Symlink))
}

/// Opens a folder in a folder. A symbolic link there is an error.
pub(crate) fn open_folder(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    openat(folder, OsStr::from_bytes(name), FOLDER, Mode::empty())
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn root_is_the_same_in_one_call_and_name_by_name() {
        let at = tempfile::tempdir().expect("a folder");
        let real = at.path().canonicalize().expect("a path");
        std::fs::create_dir_all(real.join("a/b")).expect("folders");
        std::fs::write(real.join("file"), "").expect("a file");
        symlink("a", real.join("link")).expect("a link");
        symlink("b", real.join("a/inner")).expect("a link");
        let cases = [
            ("a/b", Ok(())),
            ("a/./b/../b", Ok(())),
            ("link", Err(Errno::LOOP)),
            ("link/b", Err(Errno::LOOP)),
            ("a/inner", Err(Errno::LOOP)),
            ("a/absent", Err(Errno::NOENT)),
            ("file", Err(Errno::NOTDIR)),
        ];
        for (path, expected) in cases {
            let path = real.join(path);
            for open in [open_root, open_root_by_names] {
                assert_eq!(open(&path).map(drop), expected, "{}", path.display());
            }
        }
    }
}
