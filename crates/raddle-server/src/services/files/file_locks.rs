//! Locks on files that are being read or written. Lanes order one connection's requests and ignore
//! those of others, so that no client can block another's paths. These locks keep the writes of two
//! connections from interleaving, and readers from partial contents. They are held only while the
//! file is really read or written.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::wire_error::WireError;

/// Limit: time a disk job waits for a file that another connection reads or writes; beyond it, the
/// server rejects the request with -32001 and says when to retry.
///
/// The other's disk may hang.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Identity of a file under any name: its device and inode.
type FileId = (u64, u64);

/// The lock requests, granted and waiting, in order of arrival. One table for the process, because
/// it has one file system.
static FILE_LOCKS: Mutex<BTreeMap<u64, LockRequest>> = Mutex::new(BTreeMap::new());

/// Notified whenever a lock is released.
static RELEASED: Condvar = Condvar::new();

#[derive(Clone, Copy, Debug)]
struct LockRequest {
    reads: Option<FileId>,
    writes: Option<FileId>,
    is_granted: bool,
}

impl LockRequest {
    fn goes_with(&self, other: &Self) -> bool {
        let differ = |a: Option<FileId>, b: Option<FileId>| a.is_none() || a != b;
        differ(self.writes, other.writes)
            && differ(self.writes, other.reads)
            && differ(self.reads, other.writes)
    }
}

/// The right to use a file; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct FileLock {
    ticket: u64,
}

impl FileLock {
    /// Waits until no other request writes the file.
    pub(crate) fn to_read(file: &Metadata) -> Result<Self, WireError> {
        Self::begin(Some(file), None, LOCK_TIMEOUT)
    }

    /// Waits until no other request uses the file.
    pub(crate) fn to_write(file: &Metadata) -> Result<Self, WireError> {
        Self::begin(None, Some(file), LOCK_TIMEOUT)
    }

    /// Waits for both files of a copy.
    pub(crate) fn to_copy(from: &Metadata, to: &Metadata) -> Result<Self, WireError> {
        Self::begin(Some(from), Some(to), LOCK_TIMEOUT)
    }

    /// Queues for all files at once, and so waits only for earlier requests.
    fn begin(
        reads: Option<&Metadata>,
        writes: Option<&Metadata>,
        wait_max: Duration,
    ) -> Result<Self, WireError> {
        let file = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let request = LockRequest {
            reads: reads.map(file),
            writes: writes.map(file),
            is_granted: false,
        };
        let started = Instant::now();
        let mut requests = lock_requests();
        let ticket = requests.last_key_value().map_or(0, |(last, _)| last + 1);
        requests.insert(ticket, request);
        loop {
            let is_free = requests.iter().all(|(other_ticket, other)| {
                let is_ahead = other.is_granted || *other_ticket < ticket;
                !is_ahead || *other_ticket == ticket || request.goes_with(other)
            });
            if is_free && let Some(granted) = requests.get_mut(&ticket) {
                granted.is_granted = true;
                return Ok(Self { ticket });
            }
            let remaining = wait_max.saturating_sub(started.elapsed());
            if remaining.is_zero() {
                requests.remove(&ticket);
                drop(requests);
                RELEASED.notify_all();
                return Err(WireError::Overloaded);
            }
            let wait = RELEASED.wait_timeout(requests, remaining);
            requests = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        lock_requests().remove(&self.ticket);
        RELEASED.notify_all();
    }
}

fn lock_requests() -> MutexGuard<'static, BTreeMap<u64, LockRequest>> {
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

    /// Whether the lock is granted without waiting.
    fn is_free(reads: Option<&Metadata>, writes: Option<&Metadata>) -> bool {
        FileLock::begin(reads, writes, Duration::ZERO).is_ok()
    }

    #[test]
    fn readers_share_a_file_and_a_writer_is_alone() {
        let TestFiles { one, two, .. } = &files();
        let reader = FileLock::to_read(one).expect("a lock");
        assert!(is_free(Some(one), None));
        assert!(!is_free(None, Some(one)));
        assert!(!is_free(Some(two), Some(one)));
        assert!(is_free(Some(one), Some(two)));
        drop(reader);
        let writer = FileLock::to_write(one).expect("a lock");
        assert!(!is_free(Some(one), None));
        assert!(!is_free(None, Some(one)));
        assert!(is_free(None, Some(two)));
        drop(writer);
        assert!(is_free(None, Some(one)));
    }

    #[test]
    fn waiting_requests_are_granted_when_the_lock_is_released() {
        let TestFiles { one, two, .. } = &files();
        for _ in 0..100 {
            // Opposite copies must not deadlock.
            let lock = FileLock::to_write(one).expect("a lock");
            std::thread::scope(|scope| {
                let forward = scope.spawn(|| drop(FileLock::to_copy(one, two).expect("a turn")));
                let backward = scope.spawn(|| drop(FileLock::to_copy(two, one).expect("a turn")));
                drop(lock);
                forward.join().expect("there");
                backward.join().expect("back");
            });
        }
    }
}
