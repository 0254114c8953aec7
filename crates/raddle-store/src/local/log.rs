//! The log beside the file: how long it is, how it is moved into the file, and how it is made whole
//! again after a sync that failed.
//!
//! SQLite would move it by itself, but would not say when that failed.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use raddle_core::ports::AppendError;
use rusqlite::{Connection, Error};

use super::{error, schema};

/// How many pages the log holds before they are moved into the file: 4 MiB.
const PAGES_MAX: i64 = 4096;

/// After about this much new the log is looked at again.
const LOOK_BYTES: usize = 512 << 10;

/// About what a transaction adds beside what was asked for.
const TRANSACTION_BYTES: usize = 4 << 10;

/// How often the log is read again because another process has begun it anew meanwhile.
const ATTEMPTS_MAX: u32 = 3;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// When the log is to be looked at.
#[derive(Debug, Default)]
pub(super) struct Growth {
    bytes: usize,
}

impl Growth {
    /// A transaction was committed.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes + TRANSACTION_BYTES;
    }

    /// Whether there may be enough in the log to move it. Asked once, it begins to count anew.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.bytes >= LOOK_BYTES;
        if due {
            self.bytes = 0;
        }
        due
    }
}

/// What can be done with the log, in a form that a test can make fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hands {
    /// Commits.
    pub(super) commit: fn(&Connection) -> Result<(), Error>,
    /// Moves the log.
    pub(super) tend: fn(&Connection) -> Result<(), Error>,
}

impl Default for Hands {
    fn default() -> Self {
        Self { commit, tend }
    }
}

fn commit(connection: &Connection) -> Result<(), Error> {
    connection.prepare_cached("COMMIT")?.execute([]).map(|_| ())
}

/// Moves the log into the file if it is long, and says if that failed. What readers still need stays.
fn tend(connection: &Connection) -> Result<(), Error> {
    if pages(connection)? >= PAGES_MAX {
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    }
    Ok(())
}

/// How many pages the log holds.
fn pages(connection: &Connection) -> Result<i64, Error> {
    connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))
}

/// Moves everything into the file and empties the log. Says whether a reader was in the way.
pub(super) fn empty(connection: &Connection) -> Result<bool, Error> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0).map(|busy| busy != 0)
    })
}

/// Makes a log whole after a sync that failed: the system may have forgotten that some of it was never
/// written, and would sync without a word. So every byte is written once more, which makes the system
/// remember; then it is synced, moved into the file, and emptied, and with that nothing is left of what
/// was begun and not committed.
pub(super) fn renew(connection: &Connection, folder: &Path) -> Result<(), AppendError> {
    let failed = |error: Error| error::write(&error);
    let mut whole = false;
    for _ in 0..ATTEMPTS_MAX {
        let known = pages(connection).map_err(failed)?;
        // As long as this is held, nobody adds to the log or begins it anew.
        connection.execute("BEGIN IMMEDIATE", []).map_err(failed)?;
        let sound = write_again(&path(folder));
        connection.execute("ROLLBACK", []).map_err(failed)?;
        let sound = sound.map_err(|error| error::beside(&error))?;
        whole = i64::try_from(sound).unwrap_or(i64::MAX) >= known;
        if whole {
            break;
        }
    }
    if !whole {
        let what = "the log has lost pages that were not yet in the file; end every process that uses \
                    this folder, so that what is left of the log is recovered";
        return Err(AppendError::Unavailable(what.to_owned()));
    }
    if empty(connection).map_err(failed)? {
        let what = "a reader is in the way of opening the journal again";
        return Err(AppendError::Unavailable(what.to_owned()));
    }
    Ok(())
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(format!("{}-wal", schema::FILE))
}

/// Writes a log over itself and waits for the disk. Says how many of its pages are as they were written.
fn write_again(path: &Path) -> io::Result<usize> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    file.write_all_at(&bytes, 0)?;
    file.sync_all()?;
    Ok(sound(&bytes))
}

/// How many pages of a log follow one another without a break, by their checksums.
pub(super) fn sound(log: &[u8]) -> usize {
    let Some((header, mut rest)) = log.split_at_checked(HEADER_BYTES) else {
        return 0;
    };
    let big_endian = header[3] & 1 == 1;
    let number = |bytes: &[u8], at: usize| {
        let word = bytes[at..at + 4].try_into().unwrap_or_default();
        u32::from_be_bytes(word)
    };
    let mut sum = Sum(0, 0);
    sum.add(&header[..24], big_endian);
    if sum != Sum(number(header, 24), number(header, 28)) {
        return 0;
    }
    let page_bytes = number(header, 8) as usize;
    let mut count = 0;
    while let Some((frame, next)) = rest.split_at_checked(FRAME_HEADER_BYTES + page_bytes) {
        let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
        sum.add(&head[..8], big_endian);
        sum.add(page, big_endian);
        let salted = head[8..16] == header[16..24];
        if !salted || sum != Sum(number(head, 16), number(head, 20)) {
            break;
        }
        count += 1;
        rest = next;
    }
    count
}

/// The running checksum of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum(u32, u32);

impl Sum {
    fn add(&mut self, bytes: &[u8], big_endian: bool) {
        for pair in bytes.chunks_exact(8) {
            let word = |at: usize| {
                let word = pair[at..at + 4].try_into().unwrap_or_default();
                if big_endian {
                    u32::from_be_bytes(word)
                } else {
                    u32::from_le_bytes(word)
                }
            };
            self.0 = self.0.wrapping_add(word(0)).wrapping_add(self.1);
            self.1 = self.1.wrapping_add(word(4)).wrapping_add(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with some pages, and how many SQLite says it has.
    fn log() -> (tempfile::TempDir, Connection, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let connection = schema::open_or_create(folder.path()).expect("a journal");
        for round in 0..20 {
            connection
                .execute("INSERT INTO item (at) VALUES (?1)", [round])
                .expect("room");
        }
        let pages = pages(&connection).expect("a log");
        (folder, connection, usize::try_from(pages).expect("a count"))
    }

    #[test]
    fn a_log_is_sound_as_far_as_sqlite_wrote_it() {
        let (folder, _connection, pages) = log();
        assert!(pages > 20);
        assert_eq!(write_again(&path(folder.path())).expect("written"), pages);
    }

    #[test]
    fn a_log_is_sound_only_up_to_its_first_wrong_byte() {
        let (folder, _connection, pages) = log();
        let bytes = std::fs::read(path(folder.path())).expect("a log");
        for at in [0, 9, 40, bytes.len() / 2, bytes.len() - 1] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            let frame = FRAME_HEADER_BYTES + 1024;
            let expected = at.saturating_sub(HEADER_BYTES) / frame;
            assert_eq!(sound(&bytes), expected.min(pages), "byte {at}");
        }
        assert_eq!(sound(&[]), 0);
        assert_eq!(sound(&bytes[..HEADER_BYTES]), 0);
    }

    #[test]
    fn a_log_that_lost_pages_is_not_moved_into_the_file() {
        let (folder, connection, _) = log();
        let log = path(folder.path());
        let mut bytes = std::fs::read(&log).expect("a log");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&log, &bytes).expect("written");
        let renewed = renew(&connection, folder.path());
        assert!(
            matches!(renewed, Err(AppendError::Unavailable(_))),
            "{renewed:?}"
        );
        assert_eq!(std::fs::read(&log).expect("a log"), bytes);
    }

    #[test]
    fn a_log_that_is_whole_is_emptied() {
        let (folder, connection, _) = log();
        renew(&connection, folder.path()).expect("renewed");
        assert!(
            std::fs::read(path(folder.path()))
                .expect("a log")
                .is_empty()
        );
        let count: i64 = connection
            .query_row("SELECT count(*) FROM item", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(count, 20);
    }
}
