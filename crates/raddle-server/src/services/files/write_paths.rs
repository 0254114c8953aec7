//! Where a request writes: a folder that is held open, and a name in it.
//!
//! Sandboxed commands may exchange folders and links at any moment. So the folder is opened first and judged by where
//! that led, a link at the name is followed here and judged anew, and what is written is written through the folder
//! without following a link.

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
use super::{AT_ONCE, refuse_special, removals};
use crate::wire_error::WireError;

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Whether a link at the very end is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

/// A place that may be written.
#[derive(Debug)]
pub(crate) struct WritePath {
    /// The path that was asked for.
    asked: PathBuf,
    /// The nearest folder that is there.
    folder: OwnedFd,
    /// Folders that are missing below it, and why the last of them cannot be opened.
    missing: Option<(PathBuf, Errno)>,
    /// `.` if the path ends with no name.
    name: OsString,
}

impl PathAdmission {
    /// The place that a path means to one who writes.
    pub(crate) fn place(&self, asked: &Path, last: LastLink) -> Result<WritePath, WireError> {
        let last = match names_folder(asked) {
            // This leads behind a link.
            true => LastLink::Follow,
            false => last,
        };
        let mut path = asked.to_owned();
        let mut base: Option<OwnedFd> = None;
        for _ in 0..=LINKS_MAX {
            let place = self.look(asked, &path, base.as_ref())?;
            if place.missing.is_some() || place.name == "." {
                return Ok(place);
            }
            let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match openat(&place.folder, &*place.name, look, Mode::empty()) {
                Ok(fd) => AdmittedPath::of(fd),
                Err(Errno::NOENT) => return Ok(place),
                Err(error) => return Err(io::Error::from(error).into()),
            };
            let metadata = found.metadata()?;
            if last == LastLink::Keep {
                return Ok(place);
            }
            if !metadata.is_symlink() {
                if found.is_kernels()? {
                    return Err(closed(asked));
                }
                self.check_file(asked, &metadata)?;
                return Ok(place);
            }
            let target = readlinkat(&place.folder, &*place.name, Vec::new());
            let target = target.map_err(io::Error::from)?.into_bytes();
            path = OsString::from_vec(target).into();
            base = Some(place.folder);
        }
        Err(io::Error::from(Errno::LOOP).into())
    }

    /// Opens the folder of a path, which may be relative to another, and judges where it is. The name is not followed.
    fn look(
        &self,
        asked: &Path,
        path: &Path,
        base: Option<&OwnedFd>,
    ) -> Result<WritePath, WireError> {
        let (parent, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => (parent, name),
            _ => (path, OsStr::new(".")),
        };
        let mut why = Errno::NOENT;
        for above in parent.ancestors() {
            let shown = match above.as_os_str().is_empty() {
                true => Path::new("."),
                false => above,
            };
            let opened = match base {
                Some(base) => openat(base, shown, FOLDER, Mode::empty()),
                None => openat(CWD, shown, FOLDER, Mode::empty()),
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
            let below = parent.strip_prefix(above).unwrap_or(Path::new(""));
            if below.components().any(|it| it == Component::ParentDir) {
                return Err(io::Error::from(Errno::NOENT).into());
            }
            let admitted = AdmittedPath::of(folder);
            if admitted.is_kernels()? {
                return Err(closed(asked));
            }
            self.judge_path(&admitted.real()?.join(below).join(name), asked)?;
            let is_missing = !below.as_os_str().is_empty();
            return Ok(WritePath {
                asked: asked.to_owned(),
                folder: admitted.into_fd(),
                missing: is_missing.then(|| (below.to_owned(), why)),
                name: name.to_owned(),
            });
        }
        Err(closed(asked))
    }
}

impl WritePath {
    /// Makes a file, or opens one that is there, to write it from its beginning. Only a regular one, as for reading.
    /// Its caller empties it once it has a [`super::Stay`].
    pub(crate) fn create(
        &self,
        mode: u32,
        admission: &PathAdmission,
    ) -> Result<(File, Metadata), WireError> {
        if names_folder(&self.asked) {
            return Err(io::Error::from(Errno::ISDIR).into());
        }
        let folder = self.folder()?;
        // Looked at first, because to open a device may already do something.
        let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(folder, &*self.name, look, Mode::empty()) {
            Ok(fd) => refuse_special(&self.asked, &AdmittedPath::of(fd).metadata()?)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | AT_ONCE;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let file = openat(folder, &*self.name, flags, mode).map_err(io::Error::from)?;
        let file = File::from(file);
        let metadata = file.metadata()?;
        refuse_special(&self.asked, &metadata)?;
        admission.check_file(&self.asked, &metadata)?;
        Ok((file, metadata))
    }

    /// Makes a folder, and those above it if they are missing. One that is there is left as it is.
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

    /// Makes a folder that is not there yet.
    pub(crate) fn create_folder(&self) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o777);
        Ok(mkdirat(self.folder()?, &*self.name, mode)?)
    }

    /// Makes a link to a target, which is not looked at.
    pub(crate) fn link_to(&self, target: &Path) -> io::Result<()> {
        Ok(symlinkat(target, self.folder()?, &*self.name)?)
    }

    /// Removes a file, a link, or a folder; with all that is in it if so asked, unless something closed is.
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
            let inside = removals::open_folder(folder, &self.name)?;
            let inside = AdmittedPath::of(inside);
            admission.judge_all_below(&inside.real()?, &self.asked)?;
            return Ok(removals::remove_folder(
                folder,
                &self.name,
                inside.into_fd(),
            )?);
        }
        let flags = match is_folder {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        Ok(unlinkat(folder, &*self.name, flags).map_err(io::Error::from)?)
    }

    /// The folder that the name is in.
    fn folder(&self) -> io::Result<&OwnedFd> {
        match &self.missing {
            Some((_, why)) => Err((*why).into()),
            None => Ok(&self.folder),
        }
    }
}

/// Whether a path can only mean a folder.
fn names_folder(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.")
}
