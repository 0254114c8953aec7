//! Reserved disk space, so that the end of a turn can be stored when the disk is full.
//!
//! The reserve is a file next to the journal whose blocks are allocated and never written. An
//! append that ends a turn because the disk is full may release them and use the space. All other
//! writes are rejected until the reserve is filled again, so that one thread does not use the space
//! that another needs.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};

/// Name of the reserve file.
pub(super) const FILE: &str = "reserve";

/// Limit: disk space reserved for the ends of turns; beyond it, every other write fails as full
/// until the space is free again.
///
/// It is enough for the ends of about thirty turns, or for one with a very long open answer.
pub(super) const BYTES: u64 = 1 << 20;

/// Reserved disk space. Cheap to clone.
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
    /// There is no reserve: the disk does not support it, or the journal is read-only.
    None,
}

impl Reserve {
    pub(super) fn new(folder: &Path) -> Self {
        Self::of(folder, State::Closed)
    }

    /// Returns an empty reserve, for a read-only folder.
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

    /// Whether the reserve is known to be filled, without disk I/O.
    pub(super) fn is_whole(&self) -> bool {
        match &*self.state() {
            State::Closed => false,
            State::Open(file) => is_whole(file),
            State::None => true,
        }
    }

    /// Allocates the reserve. Fails only if the disk has too little space. On a disk that does not
    /// support it, continues without a reserve.
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
                let what = format!(
                    "{path} cannot be filled: the disk has less than {kib} KiB left; free some space"
                );
                Err(io::Error::new(error.kind(), what))
            }
            Err(error) => {
                let path = self.0.path.display();
                tracing::warn!(%path, %error, "no disk space is reserved for a full disk");
                *state = State::None;
                Ok(())
            }
        }
    }

    /// Releases the space to the disk. Returns whether there was any.
    pub(super) fn release(&self) -> bool {
        let state = self.state();
        let State::Open(file) = &*state else {
            return false;
        };
        let had_space = file.metadata().is_ok_and(|it| it.len() > 0);
        had_space && file.set_len(0).is_ok()
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path)
}

/// Whether the file has its full length and was not removed.
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
    fn the_reserve_is_filled_released_and_filled_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let blocks = || {
            let file = std::fs::metadata(folder.path().join(FILE)).expect("the file");
            file.blocks() * 512
        };
        let reserve = Reserve::new(folder.path());
        assert!(!reserve.is_whole());
        reserve.fill().expect("the disk has space");
        assert!(reserve.is_whole());
        assert!(blocks() >= BYTES);
        // Another process sees the reserve too, and releases it.
        let other = Reserve::new(folder.path());
        other.fill().expect("it is there");
        assert!(other.release());
        assert_eq!(blocks(), 0);
        assert!(!reserve.is_whole());
        assert!(!reserve.release(), "there is nothing left to give back");
        reserve.fill().expect("the disk has space");
        assert!(other.is_whole());
    }

    #[test]
    fn a_reserve_that_was_removed_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let reserve = Reserve::new(folder.path());
        reserve.fill().expect("the disk has space");
        std::fs::remove_file(folder.path().join(FILE)).expect("removed");
        assert!(!reserve.is_whole());
        reserve.fill().expect("the disk has space");
        assert!(reserve.is_whole());
    }

    #[test]
    fn without_support_for_a_reserve_nothing_is_blocked() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(FILE)).expect("in the way");
        let reserve = Reserve::new(folder.path());
        reserve.fill().expect("it goes on without");
        assert!(reserve.is_whole());
        assert!(!reserve.release());
    }
}
