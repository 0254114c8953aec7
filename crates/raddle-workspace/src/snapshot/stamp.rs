//! Stamps: what a `stat` says of a file, to read only files that changed.

use std::time::{Duration, SystemTime};

use rustix::fs::Stat;

/// Attributes that change with the content of a file. The kernel sets the change time, and no
/// program can set it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub mode: u32,
    pub modified_ns: i128,
    pub changed_ns: i128,
    pub trust: Trust,
}

/// Whether an equal stamp later on means equal content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The file was last changed well before it was read.
    Settled,
    /// The file was changed so shortly before it was read that a later change may have the same
    /// times. It is read again.
    Racy,
}

/// Time within which two changes may have the same times. The kernel counts times in ticks of up
/// to 10 ms.
const TICK_NS: i128 = 50_000_000;

/// The same where a file system stores no fractions of a second: FAT counts in steps of 2 s.
const COARSE_TICK_NS: i128 = 2_500_000_000;

impl Stamp {
    /// Returns the stamp of a file that is read at the earliest at `read_ns`.
    pub fn new(stat: &Stat, read_ns: i128) -> Self {
        let time = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        let modified_ns = time(stat.st_mtime, stat.st_mtime_nsec as i64);
        let changed_ns = time(stat.st_ctime, stat.st_ctime_nsec as i64);
        let is_coarse = changed_ns % 1_000_000_000 == 0;
        let tick = if is_coarse { COARSE_TICK_NS } else { TICK_NS };
        let is_settled = modified_ns.max(changed_ns) + tick < read_ns;
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode,
            modified_ns,
            changed_ns,
            trust: if is_settled {
                Trust::Settled
            } else {
                Trust::Racy
            },
        }
    }

    /// Returns a stamp that no file has.
    pub fn none() -> Self {
        Self {
            device: 0,
            inode: 0,
            size: 0,
            mode: 0,
            modified_ns: 0,
            changed_ns: 0,
            trust: Trust::Racy,
        }
    }

    /// Returns the change time; `None` for the stamp that no file has.
    pub fn changed_at(&self) -> Option<SystemTime> {
        let ns = u64::try_from(self.changed_ns).ok().filter(|it| *it > 0)?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(ns))
    }

    /// Reports whether a file that had this stamp when it was read has the same content now.
    pub fn proves_unchanged(&self, now: &Self) -> bool {
        let trusted = Self {
            trust: self.trust,
            ..*now
        };
        self.trust == Trust::Settled && *self == trusted
    }

    /// Reports whether both are stamps of one inode.
    pub fn is_same_inode(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Reports whether all attributes are equal, whatever the trust.
    pub fn is_same_file(&self, now: &Self) -> bool {
        let trusted = Self {
            trust: self.trust,
            ..*now
        };
        *self == trusted
    }
}

/// Returns the time on the clock that also stamps files.
pub(crate) fn now_ns() -> i128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |it| i128::try_from(it.as_nanos()).unwrap_or(i128::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stamp of a file that was changed at the one time and read at the other, in ms.
    fn stamp(changed_ms: i64, modified_ms: i64, read_ms: i64) -> Stamp {
        let file = tempfile::tempfile().expect("a file");
        let mut stat = rustix::fs::fstat(file).expect("attributes");
        (stat.st_ctime, stat.st_ctime_nsec) =
            (changed_ms / 1_000, (changed_ms % 1_000 * 1_000_000) as _);
        (stat.st_mtime, stat.st_mtime_nsec) =
            (modified_ms / 1_000, (modified_ms % 1_000 * 1_000_000) as _);
        stat.st_ino = 7;
        Stamp::new(&stat, i128::from(read_ms) * 1_000_000)
    }

    #[test]
    fn only_a_file_that_was_settled_when_it_was_read_is_believed() {
        // Times of change, modification and reading, and whether an equal stamp is proof.
        let cases = [
            (10_001, 10_001, 20_000, true),
            (10_001, 10_001, 10_052, true),
            (10_001, 10_001, 10_051, false),
            (10_001, 10_001, 10_001, false),
            // The clock was ahead.
            (30_001, 10_001, 20_000, false),
            (10_001, 30_001, 20_000, false),
            // No fractions of a second: a coarse file system.
            (10_000, 10_000, 12_000, false),
            (10_000, 10_000, 13_000, true),
        ];
        for (changed, modified, read, expected) in cases {
            let then = stamp(changed, modified, read);
            let now = stamp(changed, modified, 99_000);
            assert_eq!(
                then.proves_unchanged(&now),
                expected,
                "{changed} {modified} {read}"
            );
        }
    }

    #[test]
    fn any_other_attribute_is_no_proof() {
        let then = stamp(10_001, 9_001, 20_000);
        let others = [
            stamp(10_002, 9_001, 20_000),
            stamp(10_001, 9_002, 20_000),
            Stamp { size: 1, ..then },
            Stamp { inode: 8, ..then },
            Stamp { mode: 0, ..then },
            Stamp { device: 0, ..then },
        ];
        assert!(then.proves_unchanged(&then));
        for now in others {
            assert!(!then.proves_unchanged(&now), "{now:?}");
        }
    }
}
