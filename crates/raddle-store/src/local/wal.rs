//! The WAL of the file: its size, its checkpoints, and its repair after a failed sync.
//!
//! SQLite would run checkpoints by itself, but would not report their failure.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raddle_core::ports::AppendError;
use rusqlite::{Connection, Error};

use super::{error, schema};

/// Pages in the WAL before a checkpoint: 4 MiB.
const PAGES_MAX: i64 = 4096;

/// Approximate number of new bytes after which the WAL is checked again.
const CHECK_BYTES: usize = 512 << 10;

/// Approximate overhead of a transaction.
const TRANSACTION_BYTES: usize = 4 << 10;

/// Maximum number of times the WAL is read again because another process has restarted it.
const ATTEMPTS_MAX: u32 = 3;

/// Timeout for readers when the WAL is to be emptied. Writers wait for that long.
const READER_TIMEOUT: Duration = Duration::from_millis(5);

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// Growth of the WAL, which decides when it is checked.
#[derive(Debug, Default)]
pub(super) struct Growth {
    bytes: usize,
}

impl Growth {
    /// Counts a committed transaction.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes + TRANSACTION_BYTES;
    }

    /// Whether the WAL is about to be checked.
    pub(super) fn is_near(&self) -> bool {
        self.bytes >= CHECK_BYTES
    }

    /// Whether there may be enough in the WAL for a checkpoint. Resets the count if so.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.bytes >= CHECK_BYTES;
        if due {
            self.bytes = 0;
        }
        due
    }
}

/// Operations on the WAL, replaceable by tests that make them fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogOps {
    pub(super) commit: fn(&Connection) -> Result<(), Error>,
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

/// Checkpoints the WAL if it is long. Pages that readers still need stay.
fn checkpoint(connection: &Connection) -> Result<(), Error> {
    if pages(connection)? >= PAGES_MAX {
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    }
    Ok(())
}

/// Returns the number of pages in the WAL.
fn pages(connection: &Connection) -> Result<i64, Error> {
    connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1))
}

/// Checkpoints and empties the WAL. Returns whether a reader blocked that.
pub(super) fn empty(connection: &Connection) -> Result<bool, Error> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0).map(|busy| busy != 0)
    })
}

/// Empties the WAL while other writers wait: gives a short read time to finish, but not a long one.
pub(super) fn empty_soon(connection: &Connection) -> Result<bool, Error> {
    connection.busy_timeout(READER_TIMEOUT)?;
    let blocked = empty(connection);
    connection.busy_timeout(schema::BUSY_MAX)?;
    blocked
}

/// Repairs the WAL after a failed sync: the operating system may have marked unwritten pages as
/// clean, and a later sync would succeed without writing them. So every byte is written again,
/// which marks the pages as dirty. Then the WAL is synced, checkpointed and emptied, which also
/// removes uncommitted transactions.
pub(super) fn renew(connection: &Connection, folder: &Path) -> Result<(), AppendError> {
    let failed = |error: Error| error::write(&error);
    let mut whole = false;
    for _ in 0..ATTEMPTS_MAX {
        let expected = pages(connection).map_err(failed)?;
        // While this transaction lasts, no process appends to the WAL or restarts it.
        connection.execute("BEGIN IMMEDIATE", []).map_err(failed)?;
        let valid = write_again(&path(folder));
        connection.execute("ROLLBACK", []).map_err(failed)?;
        let valid = valid.map_err(|error| error::file_write(&error))?;
        whole = i64::try_from(valid).unwrap_or(i64::MAX) >= expected;
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
        let what = "a reader blocks reopening the journal; try again";
        return Err(AppendError::Unavailable(what.to_owned()));
    }
    Ok(())
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(format!("{}-wal", schema::FILE))
}

/// Rewrites and syncs a WAL. Returns the number of valid frames.
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
    Ok(valid_frames(&bytes))
}

/// Frame of a WAL: a version of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Number of the page.
    pub(super) page: u32,
    /// Offset of the page in the WAL.
    pub(super) at: u64,
    /// Whether a transaction ends with it.
    pub(super) ends: bool,
}

/// Frames since the WAL was last restarted.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Frames that SQLite serves: of committed transactions, up to the first wrong checksum.
    pub(super) committed: Vec<Frame>,
    /// Frames after those, up to the last that ends a transaction.
    pub(super) beyond: Vec<Frame>,
    /// Whether the first frame with a wrong checksum is in the middle of a transaction.
    mid_transaction: bool,
}

impl Frames {
    pub(super) fn of(log: &[u8]) -> Self {
        let Some((header, frames)) = log.split_at_checked(HEADER_BYTES) else {
            return Self::default();
        };
        let page_bytes = schema::PAGE_BYTES as usize;
        let step = FRAME_HEADER_BYTES + page_bytes;
        let mut current = Vec::new();
        for (index, frame) in frames.chunks_exact(step).enumerate() {
            // Other frames are from before the restart, or are damaged.
            if frame[8..16] == header[16..24] {
                let at = HEADER_BYTES + index * step + FRAME_HEADER_BYTES;
                let frame = Frame {
                    page: word(frame, 0),
                    at: at as u64,
                    ends: word(frame, 4) != 0,
                };
                current.push((index, frame));
            }
        }
        let valid = valid_frames(log);
        let last = |upto: usize| {
            let ends = |(index, frame): &(usize, Frame)| frame.ends && *index < upto;
            current.iter().rposition(ends).map_or(0, |at| at + 1)
        };
        let (committed, all) = (last(valid), last(usize::MAX));
        let frames = |range: &[(usize, Frame)]| range.iter().map(|(_, it)| *it).collect();
        Self {
            committed: frames(&current[..committed]),
            beyond: frames(&current[committed..all]),
            mid_transaction: committed < valid,
        }
    }

    /// Whether acknowledged transactions were lost. SQLite reads a WAL up to the first wrong
    /// checksum and silently skips the rest, because that is how a WAL ends after a loss of power.
    /// A WAL also ends like that if its writer was killed during a sync and another process
    /// overwrote the beginning of that transaction. What is left then is the end of one
    /// unacknowledged transaction. More than that means loss.
    pub(super) fn are_lost(&self) -> bool {
        let ended = self.beyond.iter().filter(|frame| frame.ends).count();
        ended > usize::from(!self.mid_transaction)
    }
}

/// Whether a WAL has a valid header. If not, SQLite reads nothing of it.
pub(super) fn has_valid_header(log: &[u8]) -> bool {
    log.is_empty()
        || log
            .get(..HEADER_BYTES)
            .is_some_and(|it| head_sum(it).is_some())
}

/// Returns the checksum of a header, if it is valid.
fn head_sum(header: &[u8]) -> Option<LogChecksum> {
    let mut sum = LogChecksum(0, 0);
    sum.add(&header[..24], header[3] & 1 == 1);
    (sum == LogChecksum(word(header, 24), word(header, 28))).then_some(sum)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}

/// Returns the number of frames up to the first wrong checksum.
pub(super) fn valid_frames(log: &[u8]) -> usize {
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

/// Running checksum of a WAL.
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
