//! Who is at which file now. Lanes keep the order of one connection's requests and know nothing of
//! another's, so that no client can hold up another's paths. That two of them do not mix what they
//! write into one file, and none reads what is half written, is seen to here, and only for as long
//! as the file is really read or written.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::wire_error::WireError;

/// How long one waits for a file that another connection is at. The other's disk may hang.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A file by whatever name: its device and its number there.
type FileId = (u64, u64);

/// Those who are at a file or wait for one, in the order they came. One table for the process, because
/// it has one file system.
static FILE_LOCKS: Mutex<BTreeMap<u64, LockRequest>> = Mutex::new(BTreeMap::new());

/// Told whenever one leaves.
static RELEASED: Condvar = Condvar::new();

#[derive(Clone, Copy, Debug)]
struct LockRequest {
    reads: Option<FileId>,
    writes: Option<FileId>,
    is_inside: bool,
}

impl LockRequest {
    fn goes_with(&self, other: &Self) -> bool {
        let apart = |one: Option<FileId>, other: Option<FileId>| one.is_none() || one != other;
        apart(self.writes, other.writes)
            && apart(self.writes, other.reads)
            && apart(self.reads, other.writes)
    }
}

/// The right to be at a file; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct FileLock {
    ticket: u64,
}

impl FileLock {
    /// Waits until nobody writes the file.
    pub(crate) fn to_read(file: &Metadata) -> Result<Self, WireError> {
        Self::begin(Some(file), None, LOCK_TIMEOUT)
    }

    /// Waits until nobody else is at the file.
    pub(crate) fn to_write(file: &Metadata) -> Result<Self, WireError> {
        Self::begin(None, Some(file), LOCK_TIMEOUT)
    }

    /// Waits for both files of a copy.
    pub(crate) fn to_copy(from: &Metadata, to: &Metadata) -> Result<Self, WireError> {
        Self::begin(Some(from), Some(to), LOCK_TIMEOUT)
    }

    /// Stands in line for all at once, and so waits only for those who came before.
    fn begin(
        reads: Option<&Metadata>,
        writes: Option<&Metadata>,
        patience: Duration,
    ) -> Result<Self, WireError> {
        let file = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let me = LockRequest {
            reads: reads.map(file),
            writes: writes.map(file),
            is_inside: false,
        };
        let begun = Instant::now();
        let mut guests = guests();
        let ticket = guests.last_key_value().map_or(0, |(last, _)| last + 1);
        guests.insert(ticket, me);
        loop {
            let is_free = guests.iter().all(|(number, other)| {
                let counts = other.is_inside || *number < ticket;
                !counts || *number == ticket || me.goes_with(other)
            });
            if is_free && let Some(me) = guests.get_mut(&ticket) {
                me.is_inside = true;
                return Ok(Self { ticket });
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                guests.remove(&ticket);
                drop(guests);
                RELEASED.notify_all();
                return Err(WireError::Overloaded);
            }
            let woken = RELEASED.wait_timeout(guests, left);
            guests = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        guests().remove(&self.ticket);
        RELEASED.notify_all();
    }
}

fn guests() -> MutexGuard<'static, BTreeMap<u64, LockRequest>> {
    FILE_LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestFiles {
        _folder: tempfile::TempDir,
        one: Metadata,
        two: Metadata,
    }

    fn files() -> TestFiles {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").expect("a file");
            std::fs::metadata(path).expect("its metadata")
        };
        let (one, two) = (file("one"), file("two"));
        TestFiles {
            _folder: folder,
            one,
            two,
        }
    }

    /// Whether there is a stay without waiting.
    fn is_free(reads: Option<&Metadata>, writes: Option<&Metadata>) -> bool {
        FileLock::begin(reads, writes, Duration::ZERO).is_ok()
    }

    #[test]
    fn readers_share_a_file_and_a_writer_is_alone() {
        let TestFiles { one, two, .. } = &files();
        let reader = FileLock::to_read(one).expect("a stay");
        assert!(is_free(Some(one), None));
        assert!(!is_free(None, Some(one)));
        assert!(!is_free(Some(two), Some(one)));
        assert!(is_free(Some(one), Some(two)));
        drop(reader);
        let writer = FileLock::to_write(one).expect("a stay");
        assert!(!is_free(Some(one), None));
        assert!(!is_free(None, Some(one)));
        assert!(is_free(None, Some(two)));
        drop(writer);
        assert!(is_free(None, Some(one)));
    }

    #[test]
    fn who_waits_goes_in_when_the_other_leaves() {
        let TestFiles { one, two, .. } = &files();
        for _ in 0..100 {
            // There and back: neither waits for the other for ever.
            let stay = FileLock::to_write(one).expect("a stay");
            std::thread::scope(|scope| {
                let there = scope.spawn(|| drop(FileLock::to_copy(one, two).expect("a turn")));
                let back = scope.spawn(|| drop(FileLock::to_copy(two, one).expect("a turn")));
                drop(stay);
                there.join().expect("there");
                back.join().expect("back");
            });
        }
    }
}
