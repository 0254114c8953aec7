//! Copies of a whole folder, in which a thread works instead of the folder itself.
//!
//! The copy has everything that a build may need: ignored files and the repository too. It goes from
//! folder to folder through open folders, as a snapshot does, so a folder that is swapped for a link
//! meanwhile cannot lead it outside.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Stat, Timespec, Timestamps, fchmod, fstat, futimens, ioctl_ficlone,
    mkdirat, openat, symlinkat, utimensat,
};
use rustix::io::Errno;

use crate::limits::DEPTH_MAX;
use crate::opened::{kind_of, open_file, open_folder, open_workspace, read_link, stat_entry};
use crate::path;
use crate::scan::{EntryNames, is_repository};
use crate::{EntryKind, Error, Gap, GapReason, WorkspacePath};

/// Permissions of a folder while it is filled.
const PRIVATE: Mode = Mode::RWXU;

/// Limits of a copy. A folder beyond them is not copied.
#[derive(Clone, Copy, Debug)]
pub struct CopyLimits {
    /// Number of files, links and folders.
    pub entries_max: u64,
    /// Bytes of all files that the file system cannot share between the folder and its copy.
    pub bytes_max: u64,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self {
            // Limit: files, links and folders of a workspace that a thread copies; beyond it,
            // thread/start or thread/fork is rejected with -32600.
            entries_max: 1_000_000,
            // Limit: bytes that the copy of a workspace takes on the disk; beyond it, thread/start or
            // thread/fork is rejected with -32600.
            bytes_max: 8 << 30,
        }
    }
}

/// Copies a folder with everything in it to a path that does not exist yet. Returns what is not in
/// the copy: pipes, sockets and devices, other file systems, and what cannot be read.
///
/// A `.git` that is a file is not copied either: it names a repository elsewhere, which commands in
/// the copy would change. Owners and extended attributes are not kept, nor are the bits of a mode
/// beyond `0o777`. If it fails, nothing remains.
pub fn copy_folder(from: &Path, to: &Path, limits: &CopyLimits) -> Result<Vec<Gap>, Error> {
    let source = open_workspace(from)?;
    let stat = fstat(&source).map_err(|it| Error::disk(from, it))?;
    let at_target = |it: Errno| Error::disk(to, it);
    mkdirat(CWD, to, PRIVATE).map_err(at_target)?;
    let copied = (|| {
        let target = open_folder(CWD, to.as_os_str().as_bytes()).map_err(at_target)?;
        let target_stat = fstat(&target).map_err(at_target)?;
        let mut copier = Copier {
            limits,
            device: stat.st_dev,
            target: (target_stat.st_dev, target_stat.st_ino),
            path: Vec::new(),
            entries: 0,
            bytes: 0,
            gaps: Vec::new(),
        };
        let failed = |path: &[u8], error: Errno| {
            let path = from.join(OsStr::from_bytes(path));
            Error::disk(&path, error)
        };
        match copier.folder(&source, &target) {
            Ok(()) => {
                finish(&target, &stat).map_err(at_target)?;
                Ok(copier.gaps)
            }
            Err(CopyFailure::Disk(error)) => Err(failed(&copier.path, error)),
            Err(CopyFailure::TooLarge) => Err(Error::TooLarge {
                folder: from.to_owned(),
                entries_max: limits.entries_max,
                bytes_max: limits.bytes_max,
            }),
        }
    })();
    if copied.is_err() {
        remove_copy(to)?;
    }
    copied
}

/// Removes a copy. Folders that their owner may not change are removed too.
pub fn remove_copy(copy: &Path) -> Result<(), Error> {
    let removed = match fs::remove_dir_all(copy) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_folders(copy).and_then(|()| fs::remove_dir_all(copy))
        }
        removed => removed,
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::disk(copy, error)),
        _ => Ok(()),
    }
}

/// Lets the owner change every folder of a tree.
fn open_folders(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

enum CopyFailure {
    Disk(Errno),
    TooLarge,
}

impl From<Errno> for CopyFailure {
    fn from(error: Errno) -> Self {
        Self::Disk(error)
    }
}

struct Copier<'a> {
    limits: &'a CopyLimits,
    device: u64,
    /// The copy itself, which may be in the folder.
    target: (u64, u64),
    /// Path of the entry at which it is.
    path: Vec<u8>,
    entries: u64,
    bytes: u64,
    gaps: Vec<Gap>,
}

impl Copier<'_> {
    fn folder(&mut self, from: &OwnedFd, to: &OwnedFd) -> Result<(), CopyFailure> {
        let names = EntryNames::read(from)?;
        for (name, _) in names.iter() {
            let length = self.path.len();
            path::push(&mut self.path, name);
            self.entry(from, to, name)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> Result<(), CopyFailure> {
        let stat = match stat_entry(from, name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ACCESS) => {
                self.gap(GapReason::Unreadable);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.entries += 1;
        if self.entries > self.limits.entries_max {
            return Err(CopyFailure::TooLarge);
        }
        let Some(kind) = kind_of(&stat) else {
            self.gap(GapReason::Special);
            return Ok(());
        };
        if stat.st_dev != self.device {
            self.gap(GapReason::OtherFileSystem);
            return Ok(());
        }
        if kind != EntryKind::Folder && is_repository(name) {
            self.gap(GapReason::Repository);
            return Ok(());
        }
        let copied = match kind {
            EntryKind::File => self.file(from, to, name),
            EntryKind::Symlink => link(from, to, name, &stat).map_err(CopyFailure::Disk),
            EntryKind::Folder => self.inner_folder(from, to, name, &stat),
        };
        match copied {
            // It was removed or replaced meanwhile.
            Err(CopyFailure::Disk(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL)) => {
                Ok(())
            }
            Err(CopyFailure::Disk(Errno::ACCESS | Errno::PERM)) => {
                self.gap(GapReason::Unreadable);
                Ok(())
            }
            copied => copied,
        }
    }

    fn inner_folder(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        name: &[u8],
        stat: &Stat,
    ) -> Result<(), CopyFailure> {
        if (stat.st_dev, stat.st_ino) == self.target {
            return Ok(());
        }
        if self.path.iter().filter(|it| **it == b'/').count() >= DEPTH_MAX {
            self.gap(GapReason::TooDeep);
            return Ok(());
        }
        let opened = open_folder(from, name)?;
        mkdirat(to, OsStr::from_bytes(name), PRIVATE)?;
        let target = open_folder(to, name)?;
        self.folder(&opened, &target)?;
        Ok(finish(&target, stat)?)
    }

    fn file(&mut self, from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> Result<(), CopyFailure> {
        let (mut source, stat) = open_file(from, name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let name = OsStr::from_bytes(name);
        let created = openat(to, name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
        let mut target = File::from(created);
        if ioctl_ficlone(&target, &source).is_err() {
            // The file system shares no blocks between files.
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            self.bytes = self.bytes.saturating_add(size);
            if self.bytes > self.limits.bytes_max {
                return Err(CopyFailure::TooLarge);
            }
            // The kernel copies without a detour through this process, where it can.
            io::copy(&mut source, &mut target).map_err(|error| {
                let code = error.raw_os_error();
                CopyFailure::Disk(code.map_or(Errno::IO, Errno::from_raw_os_error))
            })?;
        }
        Ok(finish(&target, &stat)?)
    }

    fn gap(&mut self, reason: GapReason) {
        let path = Some(WorkspacePath::from_walk(&self.path));
        self.gaps.push(Gap { path, reason });
    }
}

/// Gives a copied file or folder its mode and times. Builds compare the times.
fn finish(target: impl AsFd, stat: &Stat) -> Result<(), Errno> {
    fchmod(&target, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    futimens(&target, &times(stat))
}

fn link(from: &OwnedFd, to: &OwnedFd, name: &[u8], stat: &Stat) -> Result<(), Errno> {
    let target = read_link(from, name)?;
    let name = OsStr::from_bytes(name);
    symlinkat(OsStr::from_bytes(&target), to, name)?;
    utimensat(to, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)
}

fn times(stat: &Stat) -> Timestamps {
    let time = |tv_sec, tv_nsec: u64| Timespec {
        tv_sec,
        tv_nsec: tv_nsec.cast_signed(),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}
