//! Writing several files as one, as far as a file system can.
//!
//! New contents are written beside each file, then exchanged with it, and what was displaced is compared with
//! what was looked at. Only when all is well does the displaced go. So whoever writes one of the files at
//! the same moment loses nothing, and a link put in a file's place is moved aside, never followed.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, fchmod, fstat, linkat, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::change::{ApplyError, Contents, PlannedFile};
use super::error::ToolError;
use super::open::{contents, disk, open_file};
use super::roots::Roots;
use super::walk::{self, FileId, OpenMode};

pub(crate) fn run(roots: &Roots, files: &[PlannedFile]) -> Result<(), ApplyError> {
    for file in files {
        unchanged(roots, file)?;
    }
    let mut work = SwapJob::new(roots);
    match work.all(roots, files) {
        Ok(()) => {
            work.commit();
            Ok(())
        }
        Err(SwapError::Changed(path)) => match work.undo() {
            stands if stands.is_empty() => Err(ApplyError::Changed(path)),
            stands => {
                let why = disk(&path, Errno::BUSY);
                Err(ApplyError::Failed { why, stands })
            }
        },
        Err(SwapError::Failed(why)) => {
            let stands = work.undo();
            Err(ApplyError::Failed { why, stands })
        }
    }
}

/// Looks before anything is written, so that an old plan costs nothing.
fn unchanged(roots: &Roots, file: &PlannedFile) -> Result<(), ApplyError> {
    let shown = &file.target.shown;
    let changed = || ApplyError::Changed(shown.clone());
    let parent = file.target.plain.parent().ok_or_else(changed)?;
    let name = file.target.plain.file_name().ok_or_else(changed)?;
    let is_same = match roots.folder(&file.target, parent) {
        Ok(folder) => is_at(&folder, name, file.base.as_ref(), shown),
        Err(Errno::NOENT) => file.base.is_none(),
        Err(_) => false,
    };
    is_same.then_some(()).ok_or_else(changed)
}

fn is_at(folder: &OwnedFd, name: &OsStr, base: Option<&Contents>, shown: &Path) -> bool {
    match (open_file(folder, name, shown), base) {
        (Ok(None), None) => true,
        (Ok(Some((file, stat))), Some(base)) => {
            contents(file, &stat, shown).is_ok_and(|it| it.bytes == base.bytes)
        }
        _ => false,
    }
}

struct SwapJob {
    open_mode: OpenMode,
    files: Vec<FileSwap>,
    made: Vec<(OwnedFd, OsString)>,
}

/// One file, and how far it is.
struct FileSwap {
    folder: OwnedFd,
    name: OsString,
    shown: PathBuf,
    /// The name beside it that is ours: of the new until they are exchanged, of the old afterwards.
    beside: OsString,
    /// A second one, where the system cannot exchange.
    aside: OsString,
    /// The new file, whatever it is called.
    staged: Option<FileId>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Nothing,
    Staged,
    Exchanged,
    SetAside,
    Replaced,
    Made,
    Removed,
}

#[derive(Debug)]
enum SwapError {
    Changed(PathBuf),
    Failed(ToolError),
}

impl SwapJob {
    fn new(roots: &Roots) -> Self {
        Self {
            open_mode: roots.open_mode(),
            files: Vec::new(),
            made: Vec::new(),
        }
    }

    fn all(&mut self, roots: &Roots, files: &[PlannedFile]) -> Result<(), SwapError> {
        self.stage_all(roots, files)?;
        self.exchange_all(files)
    }

    fn stage_all(&mut self, roots: &Roots, files: &[PlannedFile]) -> Result<(), SwapError> {
        let mut staged = files.iter().map(|it| self.stage(roots, it));
        staged.try_for_each(|it| it.map_err(SwapError::Failed))
    }

    fn exchange_all(&mut self, files: &[PlannedFile]) -> Result<(), SwapError> {
        let mut seats = self.files.iter_mut().zip(files);
        seats.try_for_each(|(seat, file)| seat.exchange(file, self.open_mode))
    }

    fn stage(&mut self, roots: &Roots, file: &PlannedFile) -> Result<(), ToolError> {
        let shown = file.target.shown.clone();
        let name = file.target.plain.file_name().unwrap_or_default().to_owned();
        let folder = self.parents(roots, file).map_err(|it| disk(&shown, it))?;
        self.files.push(FileSwap {
            folder,
            name,
            shown,
            beside: free_name(),
            aside: free_name(),
            staged: None,
            state: State::Nothing,
        });
        let seat = self.files.last_mut();
        match (seat, &file.now) {
            (Some(seat), Some(now)) => {
                seat.stage(now, file.base.is_none() && file.moved_from.is_none())
            }
            _ => Ok(()),
        }
    }

    /// Opens the folder around a file, and makes what is missing of it.
    fn parents(&mut self, roots: &Roots, file: &PlannedFile) -> Result<OwnedFd, Errno> {
        let mut at = file.target.plain.parent().ok_or(Errno::ISDIR)?;
        let mut missing = Vec::new();
        let mut folder = loop {
            match roots.folder(&file.target, at) {
                Err(Errno::NOENT) => {
                    missing.push(at.file_name().ok_or(Errno::NOENT)?);
                    at = at.parent().ok_or(Errno::NOENT)?;
                }
                answer => break answer?,
            }
        };
        for name in missing.into_iter().rev() {
            match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                Err(Errno::EXIST) => {
                    folder = walk::folder(&folder, Path::new(name), self.open_mode)?
                }
                answer => {
                    answer?;
                    let inner = walk::folder(&folder, Path::new(name), self.open_mode)?;
                    self.made.push((folder, name.to_owned()));
                    folder = inner;
                }
            }
        }
        Ok(folder)
    }

    fn commit(self) {
        for seat in self.files {
            let left = match seat.state {
                State::Exchanged => Some(&seat.beside),
                State::Replaced | State::Removed => Some(&seat.aside),
                _ => None,
            };
            if let Some(name) = left
                && let Err(error) = unlinkat(&seat.folder, name, AtFlags::empty())
            {
                tracing::warn!(file = ?seat.shown, %error, "what a file was before is left beside it");
            }
        }
    }

    /// Puts back what was there; gives what could not be.
    fn undo(self) -> Vec<PathBuf> {
        let mut stands = Vec::new();
        for seat in self.files.into_iter().rev() {
            if seat.undo().is_err() {
                stands.push(seat.shown);
            }
        }
        for (folder, name) in self.made.iter().rev() {
            // Something else may be in it by now; then it stays.
            let _ = unlinkat(folder, name, AtFlags::REMOVEDIR);
        }
        stands
    }
}

impl FileSwap {
    fn stage(&mut self, now: &Contents, is_new: bool) -> Result<(), ToolError> {
        let failed = |error| disk(&self.shown, error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = if is_new { 0o666 } else { 0o600 };
        let beside = openat(
            &self.folder,
            &self.beside,
            flags | OFlags::CLOEXEC,
            Mode::from_raw_mode(mode),
        )
        .map_err(failed)?;
        self.state = State::Staged;
        self.staged = Some(FileId::of(&fstat(&beside).map_err(failed)?));
        let mut file = File::from(beside);
        file.write_all(&now.bytes)
            .map_err(|source| ToolError::Disk {
                path: self.shown.clone(),
                source,
            })?;
        if !is_new {
            fchmod(&file, Mode::from_raw_mode(now.mode)).map_err(failed)?;
        }
        Ok(())
    }

    fn exchange(&mut self, file: &PlannedFile, way: OpenMode) -> Result<(), SwapError> {
        match (&file.base, &file.now) {
            (Some(base), Some(_)) => self.replace(base, way),
            (Some(base), None) => self.set_aside(base, State::Removed),
            (None, Some(_)) => self.make(way),
            (None, None) => Ok(()),
        }
    }

    fn replace(&mut self, base: &Contents, way: OpenMode) -> Result<(), SwapError> {
        if way == OpenMode::Kernel {
            match self.rename(&self.beside, &self.name, RenameFlags::EXCHANGE) {
                Ok(()) => {
                    self.state = State::Exchanged;
                    return self.compare(&self.beside, base);
                }
                Err(Errno::NOENT) => return Err(SwapError::Changed(self.shown.clone())),
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.set_aside(base, State::SetAside)?;
        renameat(&self.folder, &self.beside, &self.folder, &self.name)
            .map_err(|it| self.failed(it))?;
        self.state = State::Replaced;
        Ok(())
    }

    fn set_aside(&mut self, base: &Contents, state: State) -> Result<(), SwapError> {
        match renameat(&self.folder, &self.name, &self.folder, &self.aside) {
            Ok(()) => self.state = state,
            Err(Errno::NOENT) => return Err(SwapError::Changed(self.shown.clone())),
            Err(error) => return Err(self.failed(error)),
        }
        self.compare(&self.aside, base)
    }

    fn make(&mut self, way: OpenMode) -> Result<(), SwapError> {
        let made = match way {
            OpenMode::Kernel => self.rename(&self.beside, &self.name, RenameFlags::NOREPLACE),
            OpenMode::Steps => Err(Errno::NOSYS),
        };
        let made = match made {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.link(),
            made => made,
        };
        match made {
            Ok(()) => self.state = State::Made,
            Err(Errno::EXIST) => return Err(SwapError::Changed(self.shown.clone())),
            Err(error) => return Err(self.failed(error)),
        }
        Ok(())
    }

    fn rename(&self, from: &OsStr, to: &OsStr, flags: RenameFlags) -> Result<(), Errno> {
        renameat_with(&self.folder, from, &self.folder, to, flags)
    }

    /// What was displaced must be what was looked at.
    fn compare(&self, displaced: &OsStr, base: &Contents) -> Result<(), SwapError> {
        if is_at(&self.folder, displaced, Some(base), &self.shown) {
            return Ok(());
        }
        Err(SwapError::Changed(self.shown.clone()))
    }

    /// Gives a new file its name; a name that is taken is an error.
    fn link(&self) -> Result<(), Errno> {
        let (folder, flags) = (&self.folder, AtFlags::empty());
        linkat(folder, &self.beside, folder, &self.name, flags)?;
        unlinkat(folder, &self.beside, flags)
    }

    fn undo(&self) -> Result<(), Errno> {
        let (folder, flags) = (&self.folder, AtFlags::empty());
        match self.state {
            State::Nothing => Ok(()),
            State::Staged => unlinkat(folder, &self.beside, flags),
            State::Exchanged => {
                self.rename(&self.beside, &self.name, RenameFlags::EXCHANGE)?;
                self.unlink_ours(&self.beside)
            }
            State::SetAside => {
                renameat(folder, &self.aside, folder, &self.name)?;
                unlinkat(folder, &self.beside, flags)
            }
            State::Replaced | State::Removed => renameat(folder, &self.aside, folder, &self.name),
            State::Made => self.unlink_ours(&self.name),
        }
    }

    /// Removes what we wrote. If someone put something else in its place, that is not ours to remove.
    fn unlink_ours(&self, name: &OsStr) -> Result<(), Errno> {
        let there = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if Some(FileId::of(&there)) != self.staged {
            return Err(Errno::BUSY);
        }
        unlinkat(&self.folder, name, AtFlags::empty())
    }

    fn failed(&self, error: Errno) -> SwapError {
        SwapError::Failed(disk(&self.shown, error))
    }
}

/// A name that nothing has.
fn free_name() -> OsString {
    let mark = RandomState::new().build_hasher().finish();
    format!(".raddle-{mark:016x}.tmp").into()
}
