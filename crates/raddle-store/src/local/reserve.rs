//! Room on the disk that is held back, so that the end of a turn can be stored when the disk is full.
//!
//! The room is a file beside the journal whose blocks are allocated and never written. An append that
//! ends a turn because the disk is full may remove them and use the room. Nothing else is written until
//! the file is whole again, so that one thread does not use what another needs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

/// The file's name.
pub(super) const FILE: &str = "reserve";

/// How much is held back: the ends of some thirty turns, or of one whose open answer is very long.
pub(super) const BYTES: u64 = 1 << 20;

/// Room that is held back. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Reserve(Arc<ReserveInner>);

#[derive(Debug)]
struct ReserveInner {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The file was not opened yet, or was removed.
    Closed,
    Open(File),
    /// No room is held back here: the disk cannot do it, or the journal is only read.
    None,
}

impl Reserve {
    pub(super) fn new(folder: &Path) -> Self {
        Self::of(folder, State::Closed)
    }

    /// One that holds nothing back, for a folder that is only read.
    pub(super) fn none(folder: &Path) -> Self {
        Self::of(folder, State::None)
    }

    fn of(folder: &Path, state: State) -> Self {
        Self(Arc::new(ReserveInner {
            path: folder.join(FILE),
            state: Mutex::new(state),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the room is there, as far as that can be told without waiting for the disk.
    pub(super) fn is_whole(&self) -> bool {
        match &*self.state() {
            State::Closed => false,
            State::Open(file) => is_whole(file),
            State::None => true,
        }
    }

    /// Allocates the room. Fails only if there is too little; on a disk that cannot hold room back
    /// nothing is held back.
    pub(super) fn fill(&self) -> io::Result<()> {
        let mut state = self.state();
        let filled = match &*state {
            State::None => return Ok(()),
            State::Open(file) if is_whole(file) => return Ok(()),
            State::Open(_) | State::Closed => open(&self.0.path).and_then(|file| {
                allocate(&file).inspect_err(|_| drop(file.set_len(0)))?;
                Ok(file)
            }),
        };
        match filled {
            Ok(file) => {
                *state = State::Open(file);
                Ok(())
            }
            Err(error) if is_full(&error) => {
                *state = State::Closed;
                let path = self.0.path.display();
                let kib = BYTES >> 10;
                let what =
                    format!("{path} cannot be filled: the disk has less than {kib} KiB left");
                Err(io::Error::new(error.kind(), what))
            }
            Err(error) => {
                let path = self.0.path.display();
                tracing::warn!(%path, %error, "no room is held back for a full disk");
                *state = State::None;
                Ok(())
            }
        }
    }

    /// Gives the room back to the disk. Returns whether there was any.
    pub(super) fn release(&self) -> bool {
        let state = self.state();
        let State::Open(file) = &*state else {
            return false;
        };
        let had_room = file.metadata().is_ok_and(|it| it.len() > 0);
        had_room && file.set_len(0).is_ok()
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path)
}

/// Whether the file has its length, and was not removed.
fn is_whole(file: &File) -> bool {
    file.metadata()
        .is_ok_and(|it| it.len() >= BYTES && it.nlink() > 0)
}

fn allocate(file: &File) -> io::Result<()> {
    let allocated = retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, BYTES));
    match allocated {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            let block = [0; 64 << 10];
            (0..BYTES)
                .step_by(block.len())
                .try_for_each(|at| file.write_all_at(&block, at))
        }
        allocated => Ok(allocated?),
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_held_back_given_back_and_held_back_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let blocks = || {
            let file = std::fs::metadata(folder.path().join(FILE)).expect("the file");
            file.blocks() * 512
        };
        let reserve = Reserve::new(folder.path());
        assert!(!reserve.is_whole());
        reserve.fill().expect("there is room");
        assert!(reserve.is_whole());
        assert!(blocks() >= BYTES);
        // Another process sees it too, and gives it back.
        let other = Reserve::new(folder.path());
        other.fill().expect("it is there");
        assert!(other.release());
        assert_eq!(blocks(), 0);
        assert!(!reserve.is_whole());
        assert!(!reserve.release(), "there is nothing left to give back");
        reserve.fill().expect("there is room");
        assert!(other.is_whole());
    }

    #[test]
    fn a_reserve_that_was_removed_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let reserve = Reserve::new(folder.path());
        reserve.fill().expect("there is room");
        std::fs::remove_file(folder.path().join(FILE)).expect("removed");
        assert!(!reserve.is_whole());
        reserve.fill().expect("there is room");
        assert!(reserve.is_whole());
    }

    #[test]
    fn where_nothing_can_be_held_back_nothing_waits_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(FILE)).expect("in the way");
        let reserve = Reserve::new(folder.path());
        reserve.fill().expect("it goes on without");
        assert!(reserve.is_whole());
        assert!(!reserve.release());
    }
}
