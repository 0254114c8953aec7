//! Opens files so that the checked file is the one that is used.
//!
//! Sandboxed commands may put a link, a pipe or another file at a path at any moment. So a folder
//! is opened by its plain path without following links, and work in it goes through its descriptor.
//! The type of a file is read from its descriptor.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, open, openat, openat2,
};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the folder at an absolute path. A link anywhere on the path is an error.
pub(super) fn folder(path: &Path) -> io::Result<OwnedFd> {
    let rules = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    match openat2(CWD, path, FOLDER, Mode::empty(), rules) {
        // The kernel lacks it, or a filter refuses it.
        Err(Errno::NOSYS | Errno::PERM) => by_steps(path, |_, _| Err(Errno::NOENT)),
        result => Ok(result?),
    }
}

/// Opens the entry at an absolute path without any access right. A link there, or anywhere on the
/// path, is an error.
pub(super) fn entry(path: &Path) -> io::Result<OwnedFd> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder(parent)?, name, flags, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Ok(file),
    }
}

/// Opens a folder like [`folder`], and creates missing folders with this mode.
pub(super) fn make_folders(path: &Path, mode: Mode) -> io::Result<OwnedFd> {
    by_steps(path, |parent, name| match mkdirat(parent, name, mode) {
        Ok(()) | Err(Errno::EXIST) => openat(parent, name, FOLDER, Mode::empty()),
        Err(error) => Err(error),
    })
}

/// Opens a path name by name; `missing` opens a name that does not exist.
fn by_steps(
    path: &Path,
    missing: impl Fn(BorrowedFd<'_>, &OsStr) -> rustix::io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    let mut folder = openat(CWD, "/", FOLDER, Mode::empty())?;
    for part in path.components() {
        let name = match part {
            Component::RootDir | Component::CurDir => continue,
            Component::Normal(name) => name,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
        };
        folder = match openat(&folder, name, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => missing(folder.as_fd(), name)?,
            result => result?,
        };
    }
    Ok(folder)
}

/// Opens an ordinary file, wherever links lead. It opens nothing else: a pipe would block, and
/// opening a device may have effects.
pub(super) fn ordinary_file(path: &Path) -> io::Result<File> {
    let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Reopens the same file for reading. Some ordinary files of the kernel block too.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let reopen_path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok(open(&reopen_path, flags, Mode::empty())?.into())
}

/// Reads the beginning of an ordinary file.
pub(super) fn read_at_most(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ordinary_file(path)?
        .take(bytes_max)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_opened_by_its_plain_path_only() {
        let root = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(root.path()).expect("its plain path");
        fs::create_dir_all(root.join("a/b")).expect("folders");
        fs::write(root.join("file"), "").expect("a file");
        symlink("a", root.join("link")).expect("a link");
        for (path, is_opened) in [
            ("a/b", true),
            ("a", true),
            ("link", false),
            ("link/b", false),
            ("file", false),
            ("none", false),
        ] {
            let is_there = is_opened || path == "file";
            let path = root.join(path);
            assert_eq!(entry(&path).is_ok(), is_there, "{}", path.display());
            assert_eq!(folder(&path).is_ok(), is_opened, "{}", path.display());
            let steps = by_steps(&path, |_, _| Err(Errno::NOENT));
            assert_eq!(steps.is_ok(), is_opened, "{}", path.display());
        }
    }

    #[test]
    fn only_ordinary_files_are_read() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |name: &str| root.path().join(name);
        fs::write(at("file"), "text").expect("a file");
        symlink("file", at("link")).expect("a link");
        symlink("/dev/zero", at("device")).expect("a link");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, mode, 0).expect("a pipe");
        for (name, expected) in [
            ("file", Some("tex")),
            ("link", Some("tex")),
            ("device", None),
            ("pipe", None),
            (".", None),
            ("none", None),
        ] {
            let bytes = read_at_most(&at(name), 3).ok();
            assert_eq!(bytes.as_deref(), expected.map(str::as_bytes), "{name}");
        }
    }
}
