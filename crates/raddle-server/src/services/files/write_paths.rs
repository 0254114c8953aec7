//! The target of a write: a folder that is held open, and a name in it.
//!
//! Sandboxed commands may exchange folders and links at any moment. So the folder is opened first
//! and judged by where that led. A link at the name is followed here and judged anew. The write
//! goes through the folder without following a link.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::admission::{AdmittedPath, PathAdmission, closed};
use super::{NONBLOCKING, refuse_special, removals};
use crate::wire_error::WireError;

/// The maximum number of links; the kernel follows as many.
const LINKS_MAX: usize = 40;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Whether a link at the very end is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

/// A path that may be written.
#[derive(Debug)]
pub(crate) struct WritePath {
    /// The path in the request.
    requested: PathBuf,
    /// The nearest folder that exists.
    folder: OwnedFd,
    /// The missing folders below it, and why the last of them cannot be opened.
    missing: Option<(PathBuf, Errno)>,
    /// `.` if the path ends with no name.
    name: OsString,
}

impl PathAdmission {
    /// Resolves a path to its write target.
    pub(crate) fn write_path(
        &self,
        requested: &Path,
        last: LastLink,
    ) -> Result<WritePath, WireError> {
        let last = match names_folder(requested) {
            // Such a path leads through a link.
            true => LastLink::Follow,
            false => last,
        };
        let mut path = requested.to_owned();
        let mut base: Option<OwnedFd> = None;
        for _ in 0..=LINKS_MAX {
            let write_path = self.open_parent(requested, &path, base.as_ref())?;
            if write_path.missing.is_some() || write_path.name == "." {
                return Ok(write_path);
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let entry = match openat(&write_path.folder, &*write_path.name, flags, Mode::empty()) {
                Ok(fd) => AdmittedPath::of(fd),
                Err(Errno::NOENT) => return Ok(write_path),
                Err(error) => return Err(io::Error::from(error).into()),
            };
            let metadata = entry.metadata()?;
            if last == LastLink::Keep {
                return Ok(write_path);
            }
            if !metadata.is_symlink() {
                if entry.is_kernel_generated()? {
                    return Err(closed(requested));
                }
                self.check_file(requested, &metadata)?;
                return Ok(write_path);
            }
            let target = readlinkat(&write_path.folder, &*write_path.name, Vec::new());
            let target = target.map_err(io::Error::from)?.into_bytes();
            path = OsString::from_vec(target).into();
            base = Some(write_path.folder);
        }
        Err(io::Error::from(Errno::LOOP).into())
    }

    /// Opens the folder of a path, which may be relative to another, and judges where it is. Does
    /// not follow the name.
    fn open_parent(
        &self,
        requested: &Path,
        path: &Path,
        base: Option<&OwnedFd>,
    ) -> Result<WritePath, WireError> {
        let (parent, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => (parent, name),
            _ => (path, OsStr::new(".")),
        };
        let mut why = Errno::NOENT;
        for ancestor in parent.ancestors() {
            let name_to_open = match ancestor.as_os_str().is_empty() {
                true => Path::new("."),
                false => ancestor,
            };
            let opened = match base {
                Some(base) => openat(base, name_to_open, FOLDER, Mode::empty()),
                None => openat(CWD, name_to_open, FOLDER, Mode::empty()),
            };
            let folder = match opened {
                Ok(folder) => folder,
                Err(error) => {
                    if why == Errno::NOENT {
                        why = error;
                    }
                    continue;
                }
            };
            let below = parent.strip_prefix(ancestor).unwrap_or(Path::new(""));
            if below.components().any(|it| it == Component::ParentDir) {
                return Err(io::Error::from(Errno::NOENT).into());
            }
            let admitted = AdmittedPath::of(folder);
            if admitted.is_kernel_generated()? {
                return Err(closed(requested));
            }
            self.judge_path(&admitted.real()?.join(below).join(name), requested)?;
            let is_missing = !below.as_os_str().is_empty();
            return Ok(WritePath {
                requested: requested.to_owned(),
                folder: admitted.into_fd(),
                missing: is_missing.then(|| (below.to_owned(), why)),
                name: name.to_owned(),
            });
        }
        Err(closed(requested))
    }
}

impl WritePath {
    /// Creates a file, or opens an existing one, to write it from its beginning. Only a regular
    /// one, as for reading. The caller truncates it once it has a [`super::FileLock`].
    pub(crate) fn create(
        &self,
        mode: u32,
        admission: &PathAdmission,
    ) -> Result<(File, Metadata), WireError> {
        if names_folder(&self.requested) {
            return Err(io::Error::from(Errno::ISDIR).into());
        }
        let folder = self.folder()?;
        // Checked first, because opening a device may already have an effect.
        let path_flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(folder, &*self.name, path_flags, Mode::empty()) {
            Ok(fd) => refuse_special(&self.requested, &AdmittedPath::of(fd).metadata()?)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | NONBLOCKING;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let file = openat(folder, &*self.name, flags, mode).map_err(io::Error::from)?;
        let file = File::from(file);
        let metadata = file.metadata()?;
        refuse_special(&self.requested, &metadata)?;
        admission.check_file(&self.requested, &metadata)?;
        Ok((file, metadata))
    }

    /// Creates a folder, and its missing parents. An existing one stays as it is.
    pub(crate) fn create_folders(self) -> io::Result<()> {
        let mut names = PathBuf::new();
        if let Some((missing, why)) = &self.missing {
            if *why != Errno::NOENT {
                return Err((*why).into());
            }
            names.push(missing);
        }
        names.push(&self.name);
        let mut folder = self.folder;
        for name in &names {
            match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = match openat(&folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(Errno::EXIST.into()),
                opened => opened?,
            };
        }
        Ok(())
    }

    /// Creates a folder that does not exist yet.
    pub(crate) fn create_folder(&self) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o777);
        Ok(mkdirat(self.folder()?, &*self.name, mode)?)
    }

    /// Creates a link to a target, which is not checked.
    pub(crate) fn link_to(&self, target: &Path) -> io::Result<()> {
        Ok(symlinkat(target, self.folder()?, &*self.name)?)
    }

    /// Removes a file, a link, or a folder; with its contents if requested, unless they include
    /// something closed.
    pub(crate) fn remove(
        &self,
        with_contents: bool,
        admission: &PathAdmission,
    ) -> Result<(), WireError> {
        let folder = self.folder()?;
        let stat = statat(folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(io::Error::from)?;
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_folder && with_contents {
            let contents = removals::open_folder(folder, &self.name)?;
            let contents = AdmittedPath::of(contents);
            admission.judge_all_below(&contents.real()?, &self.requested)?;
            return Ok(removals::remove_folder(
                folder,
                &self.name,
                contents.into_fd(),
            )?);
        }
        let flags = match is_folder {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        Ok(unlinkat(folder, &*self.name, flags).map_err(io::Error::from)?)
    }

    /// Returns the folder that contains the name.
    fn folder(&self) -> io::Result<&OwnedFd> {
        match &self.missing {
            Some((_, why)) => Err((*why).into()),
            None => Ok(&self.folder),
        }
    }
}

/// Whether a path can only name a folder.
fn names_folder(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.")
}
