//! The log beside the file: how long it is, how it is moved into the file, and how it is made whole
//! again after a sync that failed.
//!
//! SQLite would move it by itself, but would not say when that failed.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// How long those who write wait for one who reads, when the log is to be emptied.
const READER_TIMEOUT: Duration = Duration::from_millis(5);

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

    /// Whether the log is about to be looked at.
    pub(super) fn is_near(&self) -> bool {
        self.bytes >= LOOK_BYTES
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
pub(super) struct LogOps {
    /// Commits.
    pub(super) commit: fn(&Connection) -> Result<(), Error>,
    /// Moves the log.
    pub(super) checkpoint: fn(&Connection) -> Result<(), Error>,
}

impl Default for LogOps {
    fn default() -> Self {
        Self { commit, checkpoint }
    }
}

fn commit(connection: &Connection) -> Result<(), Error> {
    connection.prepare_cached("COMMIT")?.execute([]).map(|_| ())
}

/// Moves the log into the file if it is long, and says if that failed. What readers still need stays.
fn checkpoint(connection: &Connection) -> Result<(), Error> {
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

/// The same for one for whom others wait: a short read is let finish, a long one is not.
pub(super) fn empty_soon(connection: &Connection) -> Result<bool, Error> {
    connection.busy_timeout(READER_TIMEOUT)?;
    let in_the_way = empty(connection);
    connection.busy_timeout(schema::BUSY_MAX)?;
    in_the_way
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
        let sound = sound.map_err(|error| error::file_write(&error))?;
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

/// Something that a log holds for a page of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The number of the page.
    pub(super) page: u32,
    /// Where in the log it begins.
    pub(super) at: u64,
    /// Whether a transaction ends with it.
    pub(super) ends: bool,
}

/// The pages of a log's present round.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Those that SQLite takes: of transactions that were ended, up to the first wrong checksum.
    pub(super) taken: Vec<Frame>,
    /// Those after that, up to the last that ends a transaction.
    pub(super) beyond: Vec<Frame>,
    /// Whether the first page with a wrong checksum comes in the middle of a transaction.
    amid: bool,
}

impl Frames {
    pub(super) fn of(log: &[u8]) -> Self {
        let Some((header, frames)) = log.split_at_checked(HEADER_BYTES) else {
            return Self::default();
        };
        let page_bytes = schema::PAGE_BYTES as usize;
        let step = FRAME_HEADER_BYTES + page_bytes;
        let mut found = Vec::new();
        for (index, frame) in frames.chunks_exact(step).enumerate() {
            // Others are of a former round, or were hit.
            if frame[8..16] == header[16..24] {
                let at = HEADER_BYTES + index * step + FRAME_HEADER_BYTES;
                let frame = Frame {
                    page: word(frame, 0),
                    at: at as u64,
                    ends: word(frame, 4) != 0,
                };
                found.push((index, frame));
            }
        }
        let sound = sound(log);
        let last = |upto: usize| {
            let ends = |(index, frame): &(usize, Frame)| frame.ends && *index < upto;
            found.iter().rposition(ends).map_or(0, |at| at + 1)
        };
        let (taken, all) = (last(sound), last(usize::MAX));
        let frames = |range: &[(usize, Frame)]| range.iter().map(|(_, it)| *it).collect();
        Self {
            taken: frames(&found[..taken]),
            beyond: frames(&found[taken..all]),
            amid: taken < sound,
        }
    }

    /// Whether transactions were lost that someone was told of. SQLite takes a log up to the first page
    /// with a wrong checksum and passes over the rest without a word, because after a loss of power that
    /// is how a log ends. So does one whose writer was killed while it synced, of which another process
    /// wrote over the beginning: what is left then is the end of one transaction that nobody was told of.
    /// More than that was never there by itself.
    pub(super) fn are_lost(&self) -> bool {
        let ended = self.beyond.iter().filter(|frame| frame.ends).count();
        ended > usize::from(!self.amid)
    }
}

/// Whether a log begins as SQLite writes it. If it does not, SQLite takes nothing of it.
pub(super) fn is_headed(log: &[u8]) -> bool {
    log.is_empty()
        || log
            .get(..HEADER_BYTES)
            .is_some_and(|it| head_sum(it).is_some())
}

/// The checksum of a header, if it bears it.
fn head_sum(header: &[u8]) -> Option<LogChecksum> {
    let mut sum = LogChecksum(0, 0);
    sum.add(&header[..24], header[3] & 1 == 1);
    (sum == LogChecksum(word(header, 24), word(header, 28))).then_some(sum)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}

/// How many pages of a log follow one another without a break, by their checksums.
pub(super) fn sound(log: &[u8]) -> usize {
    let Some((header, mut rest)) = log.split_at_checked(HEADER_BYTES) else {
        return 0;
    };
    let Some(mut sum) = head_sum(header) else {
        return 0;
    };
    let big_endian = header[3] & 1 == 1;
    let page_bytes = word(header, 8) as usize;
    let mut count = 0;
    while let Some((frame, next)) = rest.split_at_checked(FRAME_HEADER_BYTES + page_bytes) {
        let (head, page) = frame.split_at(FRAME_HEADER_BYTES);
        sum.add(&head[..8], big_endian);
        sum.add(page, big_endian);
        let salted = head[8..16] == header[16..24];
        if !salted || sum != LogChecksum(word(head, 16), word(head, 20)) {
            break;
        }
        count += 1;
        rest = next;
    }
    count
}

/// The running checksum of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogChecksum(u32, u32);

impl LogChecksum {
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
mod tests;
