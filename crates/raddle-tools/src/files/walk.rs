//! Resolves paths with descriptors.
//!
//! [`follow`] resolves a path to its real path. [`folder`] opens a real path without following
//! links.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, open, openat, openat2,
};
use rustix::io::Errno;

/// Maximum number of links, as in the kernel.
const LINKS_MAX: usize = 40;

/// Magic number of procfs: its links lead anywhere, and its files contain the environment of
/// processes.
const PROC_SUPER_MAGIC: u64 = 0x9fa0;

const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Identity of a file or folder, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// Result of following a path.
#[derive(Clone, Debug)]
pub(crate) struct FollowedPath {
    /// Real path, without links, `.` and `..`.
    pub plain: PathBuf,
    /// Kind of the file at the path.
    pub kind: Kind,
    /// Ids of the folders on the path, and of the path itself.
    pub ids: Vec<FileId>,
    /// Links on the path, by their own location, and folders that it left by `..`.
    pub detours: Vec<PathBuf>,
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such path.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A link at the end that was not followed.
    Link,
    /// A pipe, a socket or a device.
    Special(&'static str),
}

impl Kind {
    pub(crate) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Special("a pipe"),
            FileType::Socket => Self::Special("a socket"),
            _ => Self::Special("a device"),
        }
    }
}

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalLink {
    Follow,
    Keep,
}

/// Resolves an absolute path to its real path. Nothing is opened for reading.
pub(crate) fn follow(top: &OwnedFd, path: &Path, last: FinalLink) -> Result<FollowedPath, Errno> {
    let mut pending: Vec<OsString> = Vec::new();
    queue(&mut pending, path);
    let mut names: Vec<OsString> = Vec::new();
    let mut walked: Vec<(OwnedFd, Stat)> = Vec::new();
    let mut detours = Vec::new();
    let (mut links, mut is_missing) = (0, false);
    while let Some(name) = pending.pop() {
        if name == OsStr::new("..") {
            if is_missing {
                return Err(Errno::NOENT);
            }
            detours.push(plain(&names));
            // The root is its own parent.
            names.pop();
            walked.pop();
            continue;
        }
        if is_missing {
            names.push(name);
            continue;
        }
        let around = walked.last().map_or(top.as_fd(), |(it, _)| it.as_fd());
        let opened = match openat(around, &*name, LOOK, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => {
                is_missing = true;
                names.push(name);
                continue;
            }
            Err(error) => return Err(error),
        };
        let stat = fstat(&opened)?;
        let is_link = Kind::of(&stat) == Kind::Link;
        if !is_link || (pending.is_empty() && last == FinalLink::Keep) {
            names.push(name);
            walked.push((opened, stat));
            continue;
        }
        links += 1;
        if links > LINKS_MAX || is_procfs(&opened)? {
            return Err(Errno::LOOP);
        }
        let target = rustix::fs::readlinkat(&opened, "", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        detours.push(plain(&names).join(name));
        if target.is_absolute() {
            names.clear();
            walked.clear();
        }
        queue(&mut pending, &target);
    }
    let kind = match walked.last() {
        _ if is_missing => Kind::Missing,
        None => Kind::Folder,
        Some((_, stat)) => Kind::of(stat),
    };
    let ids = walked.iter().map(|(_, stat)| FileId::of(stat)).collect();
    Ok(FollowedPath {
        plain: plain(&names),
        kind,
        ids,
        detours,
    })
}

/// Returns the real path of an absolute path, and every link or `..` on the path to it.
pub(crate) fn visited_paths(path: &Path) -> Result<Vec<PathBuf>, Errno> {
    let top = open("/", LOOK, Mode::empty())?;
    let followed = follow(&top, path, FinalLink::Follow)?;
    Ok([followed.detours, vec![followed.plain]].concat())
}

fn plain(names: &[OsString]) -> PathBuf {
    let mut path = PathBuf::from("/");
    path.extend(names);
    path
}

/// Pushes the names of a path onto the stack; the next one is last.
fn queue(pending: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|it| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    pending.extend(names);
}

/// Whether the file is on procfs.
pub(crate) fn is_procfs(opened: &OwnedFd) -> Result<bool, Errno> {
    let kind = fstatfs(opened)?.f_type;
    Ok(u64::try_from(kind) == Ok(PROC_SUPER_MAGIC))
}

/// Method of opening real paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// `openat2`: the kernel enforces the rules.
    Kernel,
    /// Name by name, for kernels without `openat2`.
    Steps,
}

/// Opens the folder at a real path below another. A name that is not a folder, or is a link, is an
/// error.
pub(crate) fn folder(anchor: &OwnedFd, path: &Path, open_mode: OpenMode) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if path.as_os_str().is_empty() {
        return openat(anchor, ".", flags, Mode::empty());
    }
    if open_mode == OpenMode::Kernel {
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        match openat2(anchor, path, flags, Mode::empty(), rules) {
            // `openat2` is missing, not permitted, or the path is too long for one call.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => {}
            answer => return answer,
        }
    }
    let mut current: Option<OwnedFd> = None;
    for name in path {
        if name == OsStr::new("..") {
            return Err(Errno::XDEV);
        }
        let around: BorrowedFd<'_> = current.as_ref().map_or(anchor.as_fd(), |it| it.as_fd());
        current = Some(openat(around, name, flags, Mode::empty())?);
    }
    current.ok_or(Errno::NOENT)
}
