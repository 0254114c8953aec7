//! Writes several files as one transaction, within the means of a file system.
//!
//! New contents are written to a temporary file next to each file, then exchanged with it. The
//! displaced file is compared with the contents that were planned on. Only when all files match are
//! the displaced ones deleted. So a concurrent writer loses nothing, and a link in a file's place
//! is moved aside, never followed.

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

use super::change::{ApplyError, PlannedFile};
use super::error::ToolError;
use super::open::{Contents, contents, disk, open_file};
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

/// Checks a file before anything is written, so that an outdated plan has no side effects.
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

/// One file, and the state of its replacement.
struct FileSwap {
    folder: OwnedFd,
    name: OsString,
    shown: PathBuf,
    /// Temporary name in the same folder: of the new file until the exchange, of the old one
    /// afterwards.
    beside: OsString,
    /// Second temporary name, for systems without exchanging renames.
    aside: OsString,
    /// The new file, under any name.
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
        let mut results = files.iter().map(|it| self.stage(roots, it));
        results.try_for_each(|it| it.map_err(SwapError::Failed))
    }

    fn exchange_all(&mut self, files: &[PlannedFile]) -> Result<(), SwapError> {
        let mut swaps = self.files.iter_mut().zip(files);
        swaps.try_for_each(|(swap, file)| swap.exchange(file, self.open_mode))
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
        let swap = self.files.last_mut();
        match (swap, &file.now) {
            (Some(swap), Some(now)) => {
                swap.stage(now, file.base.is_none() && file.moved_from.is_none())
            }
            _ => Ok(()),
        }
    }

    /// Opens the parent folder of a file, and creates missing folders.
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
        for swap in self.files {
            let leftover = match swap.state {
                State::Exchanged => Some(&swap.beside),
                State::Replaced | State::Removed => Some(&swap.aside),
                _ => None,
            };
            if let Some(name) = leftover
                && let Err(error) = unlinkat(&swap.folder, name, AtFlags::empty())
            {
                tracing::warn!(file = ?swap.shown, %error, "the old version of a file cannot be removed and is left beside it");
            }
        }
    }

    /// Restores the files; returns those that could not be restored.
    fn undo(self) -> Vec<PathBuf> {
        let mut stands = Vec::new();
        for swap in self.files.into_iter().rev() {
            if swap.undo().is_err() {
                stands.push(swap.shown);
            }
        }
        for (folder, name) in self.made.iter().rev() {
            // Another process may have put files into it; then it stays.
            let _ = unlinkat(folder, name, AtFlags::REMOVEDIR);
        }
        stands
    }
}

impl FileSwap {
    fn stage(&mut self, now: &Contents, is_new: bool) -> Result<(), ToolError> {
        let disk_error = |error| disk(&self.shown, error);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = if is_new { 0o666 } else { 0o600 };
        let beside = openat(
            &self.folder,
            &self.beside,
            flags | OFlags::CLOEXEC,
            Mode::from_raw_mode(mode),
        )
        .map_err(disk_error)?;
        self.state = State::Staged;
        self.staged = Some(FileId::of(&fstat(&beside).map_err(disk_error)?));
        let mut file = File::from(beside);
        file.write_all(&now.bytes)
            .map_err(|source| ToolError::Disk {
                path: self.shown.clone(),
                source,
            })?;
        if !is_new {
            fchmod(&file, Mode::from_raw_mode(now.mode)).map_err(disk_error)?;
        }
        Ok(())
    }

    fn exchange(&mut self, file: &PlannedFile, open_mode: OpenMode) -> Result<(), SwapError> {
        match (&file.base, &file.now) {
            (Some(base), Some(_)) => self.replace(base, open_mode),
            (Some(base), None) => self.set_aside(base, State::Removed),
            (None, Some(_)) => self.make(open_mode),
            (None, None) => Ok(()),
        }
    }

    fn replace(&mut self, base: &Contents, open_mode: OpenMode) -> Result<(), SwapError> {
        if open_mode == OpenMode::Kernel {
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

    fn make(&mut self, open_mode: OpenMode) -> Result<(), SwapError> {
        let made = match open_mode {
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

    /// Checks that the displaced file has the contents that were planned on.
    fn compare(&self, displaced: &OsStr, base: &Contents) -> Result<(), SwapError> {
        if is_at(&self.folder, displaced, Some(base), &self.shown) {
            return Ok(());
        }
        Err(SwapError::Changed(self.shown.clone()))
    }

    /// Links the new file to its name; fails if the name exists.
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

    /// Removes the file that this job wrote. A file that replaced it belongs to another process and
    /// stays.
    fn unlink_ours(&self, name: &OsStr) -> Result<(), Errno> {
        let stat = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if Some(FileId::of(&stat)) != self.staged {
            return Err(Errno::BUSY);
        }
        unlinkat(&self.folder, name, AtFlags::empty())
    }

    fn failed(&self, error: Errno) -> SwapError {
        SwapError::Failed(disk(&self.shown, error))
    }
}

fn free_name() -> OsString {
    let mark = RandomState::new().build_hasher().finish();
    format!(".raddle-{mark:016x}.tmp").into()
}
