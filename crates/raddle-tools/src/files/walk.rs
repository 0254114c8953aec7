//! Paths followed by descriptors.
//!
//! [`follow`] finds the plain path that a path means. [`folder`] opens a plain path and follows nothing.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, open, openat, openat2,
};
use rustix::io::Errno;

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

/// Of what the kernel shows as files: its links lead anywhere, and its files hold the environment of processes.
const PROC_SUPER_MAGIC: u64 = 0x9fa0;

const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Which file or folder, whatever it is called.
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

/// Where a path leads.
#[derive(Clone, Debug)]
pub(crate) struct FollowedPath {
    /// Without links, `.` and `..`.
    pub plain: PathBuf,
    /// What is there.
    pub kind: Kind,
    /// What it passed through, and itself.
    pub ids: Vec<FileId>,
    /// The links that it passed through, by where they stand, and the folders that it left by `..`.
    pub detours: Vec<PathBuf>,
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Missing,
    /// An ordinary file.
    File,
    /// A folder.
    Folder,
    /// A link, if the last one was not to be followed.
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

/// Whether a link at the very end is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalLink {
    Follow,
    Keep,
}

/// Finds the plain path that an absolute path means. Nothing is opened but to be looked at.
pub(crate) fn follow(top: &OwnedFd, path: &Path, last: FinalLink) -> Result<FollowedPath, Errno> {
    let mut ahead: Vec<OsString> = Vec::new();
    queue(&mut ahead, path);
    let mut names: Vec<OsString> = Vec::new();
    let mut walked: Vec<(OwnedFd, Stat)> = Vec::new();
    let mut detours = Vec::new();
    let (mut links, mut is_missing) = (0, false);
    while let Some(name) = ahead.pop() {
        if name == OsStr::new("..") {
            if is_missing {
                return Err(Errno::NOENT);
            }
            detours.push(plain(&names));
            // The top is its own parent.
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
        if !is_link || (ahead.is_empty() && last == FinalLink::Keep) {
            names.push(name);
            walked.push((opened, stat));
            continue;
        }
        links += 1;
        if links > LINKS_MAX || is_of_processes(&opened)? {
            return Err(Errno::LOOP);
        }
        let target = rustix::fs::readlinkat(&opened, "", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        detours.push(plain(&names).join(name));
        if target.is_absolute() {
            names.clear();
            walked.clear();
        }
        queue(&mut ahead, &target);
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

/// Where an absolute path leads, and every place on the way there at which it turns.
pub(crate) fn passed(path: &Path) -> Result<Vec<PathBuf>, Errno> {
    let top = open("/", LOOK, Mode::empty())?;
    let found = follow(&top, path, FinalLink::Follow)?;
    Ok([found.detours, vec![found.plain]].concat())
}

fn plain(names: &[OsString]) -> PathBuf {
    let mut path = PathBuf::from("/");
    path.extend(names);
    path
}

/// Puts the names of a path in front of what is ahead; the next one is last.
fn queue(ahead: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|it| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    ahead.extend(names);
}

/// Whether it is part of what the kernel shows of processes.
pub(crate) fn is_of_processes(opened: &OwnedFd) -> Result<bool, Errno> {
    let kind = fstatfs(opened)?.f_type;
    Ok(u64::try_from(kind) == Ok(PROC_SUPER_MAGIC))
}

/// How plain paths are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// The kernel holds to the rules by itself.
    Kernel,
    /// Name by name, for kernels that cannot.
    Steps,
}

/// Opens the folder at a plain path below another. A name that is no folder, or a link to one, is an error.
pub(crate) fn folder(anchor: &OwnedFd, path: &Path, way: OpenMode) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if path.as_os_str().is_empty() {
        return openat(anchor, ".", flags, Mode::empty());
    }
    if way == OpenMode::Kernel {
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        match openat2(anchor, path, flags, Mode::empty(), rules) {
            // It is not there, not allowed, or the path is longer than one call takes.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => {}
            answer => return answer,
        }
    }
    let mut reached: Option<OwnedFd> = None;
    for name in path {
        if name == OsStr::new("..") {
            return Err(Errno::XDEV);
        }
        let around: BorrowedFd<'_> = reached.as_ref().map_or(anchor.as_fd(), |it| it.as_fd());
        reached = Some(openat(around, name, flags, Mode::empty())?);
    }
    reached.ok_or(Errno::NOENT)
}
