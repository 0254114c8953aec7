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
const PATIENCE: Duration = Duration::from_secs(10);

/// A file by whatever name: its device and its number there.
type File = (u64, u64);

/// Those who are at a file or wait for one, in the order they came. One table for the process, because
/// it has one file system.
static GUESTS: Mutex<BTreeMap<u64, Guest>> = Mutex::new(BTreeMap::new());

/// Told whenever one leaves.
static LEFT: Condvar = Condvar::new();

#[derive(Clone, Copy, Debug)]
struct Guest {
    reads: Option<File>,
    writes: Option<File>,
    is_inside: bool,
}

impl Guest {
    fn goes_with(&self, other: &Self) -> bool {
        let apart = |one: Option<File>, other: Option<File>| one.is_none() || one != other;
        apart(self.writes, other.writes)
            && apart(self.writes, other.reads)
            && apart(self.reads, other.writes)
    }
}

/// The right to be at a file; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Stay {
    ticket: u64,
}

impl Stay {
    /// Waits until nobody writes the file.
    pub(crate) fn to_read(file: &Metadata) -> Result<Self, WireError> {
        Self::begin(Some(file), None, PATIENCE)
    }

    /// Waits until nobody else is at the file.
    pub(crate) fn to_write(file: &Metadata) -> Result<Self, WireError> {
        Self::begin(None, Some(file), PATIENCE)
    }

    /// Waits for both files of a copy.
    pub(crate) fn to_copy(from: &Metadata, to: &Metadata) -> Result<Self, WireError> {
        Self::begin(Some(from), Some(to), PATIENCE)
    }

    /// Stands in line for all at once, and so waits only for those who came before.
    fn begin(
        reads: Option<&Metadata>,
        writes: Option<&Metadata>,
        patience: Duration,
    ) -> Result<Self, WireError> {
        let file = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let me = Guest {
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
                LEFT.notify_all();
                return Err(WireError::Overloaded);
            }
            let woken = LEFT.wait_timeout(guests, left);
            guests = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        guests().remove(&self.ticket);
        LEFT.notify_all();
    }
}

fn guests() -> MutexGuard<'static, BTreeMap<u64, Guest>> {
    GUESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files {
        _folder: tempfile::TempDir,
        one: Metadata,
        two: Metadata,
    }

    fn files() -> Files {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").expect("a file");
            std::fs::metadata(path).expect("its metadata")
        };
        let (one, two) = (file("one"), file("two"));
        Files {
            _folder: folder,
            one,
            two,
        }
    }

    /// Whether there is a stay without waiting.
    fn is_free(reads: Option<&Metadata>, writes: Option<&Metadata>) -> bool {
        Stay::begin(reads, writes, Duration::ZERO).is_ok()
    }

    #[test]
    fn readers_share_a_file_and_a_writer_is_alone() {
        let Files { one, two, .. } = &files();
        let reader = Stay::to_read(one).expect("a stay");
        assert!(is_free(Some(one), None));
        assert!(!is_free(None, Some(one)));
        assert!(!is_free(Some(two), Some(one)));
        assert!(is_free(Some(one), Some(two)));
        drop(reader);
        let writer = Stay::to_write(one).expect("a stay");
        assert!(!is_free(Some(one), None));
        assert!(!is_free(None, Some(one)));
        assert!(is_free(None, Some(two)));
        drop(writer);
        assert!(is_free(None, Some(one)));
    }

    #[test]
    fn who_waits_goes_in_when_the_other_leaves() {
        let Files { one, two, .. } = &files();
        for _ in 0..100 {
            // There and back: neither waits for the other for ever.
            let stay = Stay::to_write(one).expect("a stay");
            std::thread::scope(|scope| {
                let there = scope.spawn(|| drop(Stay::to_copy(one, two).expect("a turn")));
                let back = scope.spawn(|| drop(Stay::to_copy(two, one).expect("a turn")));
                drop(stay);
                there.join().expect("there");
                back.join().expect("back");
            });
        }
    }
}
