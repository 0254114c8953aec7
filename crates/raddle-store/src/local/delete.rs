//! Deletes a thread piece by piece. Its row is deleted last, so that an interrupted deletion is
//! resumed.
//!
//! Rows that forks share stay: they are deleted with the last thread that uses them.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::chain::{self, RowChecksum};
use super::error;
use super::fence::{self, ThreadRow};
use super::files::BlobFiles;
use super::rowid::{self, key};
use super::segments::{self, Segments};
use super::{read, save, summary};
use crate::blob::Hash;
use crate::records::is_deletion;

/// Limits of one transaction: rows, bytes, and time.
const ROWS_MAX: usize = 500;
/// Limit: one transaction of a deletion, at most 5 ms long; beyond it, the rest follows in the next
/// transaction.
const BYTES_MAX: i64 = 1 << 20;
const TIME_MAX: Duration = Duration::from_millis(5);

/// Weight of a row without its text.
const ROW_BYTES: i64 = 64;

/// Marks a thread as being deleted: from now on it can be neither read nor appended to. Returns its
/// number. With a `head`, marks the thread only if its newest event has that number and records the
/// deletion.
pub(super) fn mark(
    transaction: &Connection,
    files: &BlobFiles,
    thread: ThreadId,
    head: Option<Seq>,
) -> Result<Option<i64>, Error> {
    let Some(number) = fence::number(transaction, thread)? else {
        return Ok(None);
    };
    if let Some(head) = head {
        let row = fence::row(transaction, thread)?;
        match row.filter(|row| row.head == head && !row.deleting) {
            Some(row) if is_deleted(transaction, files, &row)? => {}
            _ => return Ok(None),
        }
    }
    fence::mark_deleting(transaction, thread, number)?;
    summary::unlist(transaction, number)?;
    Ok(Some(number))
}

/// Whether a thread's newest event records its deletion. An event that cannot be read does not.
fn is_deleted(transaction: &Connection, files: &BlobFiles, row: &ThreadRow) -> Result<bool, Error> {
    let segments = Segments::of(transaction, row)?;
    let mut seq = row.head;
    while let Ok(entry) = read::event(transaction, files, &segments, segments.key_of(seq)) {
        if let Some(deleted) = is_deletion(&entry.event) {
            return Ok(deleted);
        }
        let before = Seq(seq.0.saturating_sub(1));
        seq = segments.event_upto(transaction, before)?.seq;
    }
    Ok(false)
}

/// Returns a thread whose deletion was interrupted.
pub(super) fn find_interrupted(connection: &Connection) -> Result<Option<i64>, Error> {
    let candidate: Option<i64> = connection
        .query_row(
            "SELECT number FROM thread WHERE going = 444250812007 LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()?;
    let Some(number) = candidate else {
        return Ok(None);
    };
    // A damaged index must not cause a deletion.
    match fence::of_number(connection, number)? {
        Some((_, row)) if row.deleting => Ok(Some(number)),
        _ => Err(error::damaged(
            "the index of threads that are being deleted is damaged",
        )),
    }
}

/// Result of a piece.
#[derive(Debug, Default)]
pub(super) struct DeleteStep {
    /// Whether it was the last piece.
    pub(super) done: bool,
    /// Numbers of the threads whose deletable rows are all deleted.
    pub(super) cleared: Vec<i64>,
}

/// Deletes a piece of a thread.
pub(super) fn piece(
    transaction: &Connection,
    files: &BlobFiles,
    number: i64,
) -> Result<DeleteStep, Error> {
    let mut work = DeleteBatch::new(transaction, files);
    let mut piece = DeleteStep::default();
    for table in [("delta", "length(text)"), ("leftover", "0")] {
        if !work.rows(table, rowid::first(number), rowid::last(number))? {
            return Ok(piece);
        }
    }
    let keep_upto = segments::shared_upto(transaction, number, number)?;
    if !work.trim(number, keep_upto)? {
        return Ok(piece);
    }
    piece.cleared.push(number);
    // Shared rows of another thread are deleted if no other fork shares them and their own thread
    // is deleted.
    while let Some((upto, source, sum)) = newest_segment(transaction, number)? {
        // A damaged segment may name rows that this thread must not delete.
        let sound = sum == chain::sum_of_segment(number, Seq(upto.unsigned_abs()), source);
        let exists = transaction
            .prepare_cached("SELECT 1 FROM thread WHERE number = ?1")?
            .exists([source])?;
        if sound && !exists {
            let keep_upto = segments::shared_upto(transaction, source, number)?;
            if !work.trim(source, keep_upto)? {
                return Ok(piece);
            }
            piece.cleared.push(source);
        }
        transaction
            .prepare_cached("DELETE FROM part WHERE number = ?1 AND upto = ?2")?
            .execute([number, upto])?;
    }
    transaction.execute("DELETE FROM thread WHERE number = ?1", [number])?;
    piece.done = true;
    Ok(piece)
}

/// Returns the newest segment that a fork shares and has not released.
fn newest_segment(
    connection: &Connection,
    number: i64,
) -> Result<Option<(i64, i64, RowChecksum)>, Error> {
    connection
        .prepare_cached(
            "SELECT upto, taken, sum FROM part WHERE number = ?1 ORDER BY upto DESC LIMIT 1",
        )?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()
}

/// Work of one transaction, counted against its limits.
struct DeleteBatch<'a> {
    transaction: &'a Connection,
    files: &'a BlobFiles,
    rows: usize,
    bytes: i64,
    start: Instant,
}

impl<'a> DeleteBatch<'a> {
    fn new(transaction: &'a Connection, files: &'a BlobFiles) -> Self {
        Self {
            transaction,
            files,
            rows: 0,
            bytes: 0,
            start: Instant::now(),
        }
    }

    fn is_enough(&self) -> bool {
        let over_limit = self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX;
        // On a busy machine, one row at a time still makes progress.
        over_limit || (self.rows > 0 && self.start.elapsed() >= TIME_MAX)
    }

    /// Deletes the rows of a number above those to keep. Returns whether that was all.
    fn trim(&mut self, number: i64, keep_upto: Option<Seq>) -> Result<bool, Error> {
        let first = keep_upto.map_or(rowid::first(number), |upto| key(number, upto) + 1);
        let last = rowid::last(number);
        for table in [
            ("event", "length(body)"),
            ("base", "length(body)"),
            ("turn", "length(id)"),
            ("turn_end", "0"),
            ("item", "0"),
            ("cut", "0"),
        ] {
            if !self.rows(table, first, last)? {
                return Ok(false);
            }
        }
        self.blobs(first, last)
    }

    /// Deletes rows of a table, the last first. Returns whether those were all.
    fn rows(&mut self, table: (&str, &str), first: i64, last: i64) -> Result<bool, Error> {
        let (table, weight) = table;
        let mut from = None;
        {
            let sql = format!(
                "SELECT at, {weight} FROM {table} WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC"
            );
            let mut statement = self.transaction.prepare_cached(&sql)?;
            let mut rows = statement.query([first, last])?;
            while let Some(row) = rows.next()? {
                if self.is_enough() {
                    break;
                }
                self.rows += 1;
                self.bytes += row.get::<_, i64>(1)? + ROW_BYTES;
                from = Some(row.get(0)?);
            }
        }
        if let Some(from) = from {
            let sql = format!("DELETE FROM {table} WHERE at BETWEEN ?1 AND ?2");
            let mut statement = self.transaction.prepare_cached(&sql)?;
            statement.execute([from, last])?;
        }
        Ok(!self.is_enough())
    }

    /// Deletes blob references, and the files without any other reference. Returns whether that was
    /// all.
    fn blobs(&mut self, first: i64, last: i64) -> Result<bool, Error> {
        while !self.is_enough() {
            let next: Option<(Hash, i64)> = self
                .transaction
                .prepare_cached("SELECT hash, at FROM blob_use WHERE at BETWEEN ?1 AND ?2 LIMIT 1")?
                .query_row([first, last], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((hash, at)) = next else {
                return Ok(true);
            };
            self.rows += 1;
            self.bytes += ROW_BYTES;
            self.transaction
                .prepare_cached("DELETE FROM blob_use WHERE hash = ?1 AND at = ?2")?
                .execute(params![hash, at])?;
            save::remove_unreferenced(self.transaction, self.files, &hash)?;
        }
        Ok(false)
    }
}
