//! A thread goes, piece by piece. Its row goes last, so that a deletion that was cut off is taken up again.
//!
//! What forks have taken over stays: rows go with the last thread that uses them.

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
use crate::records::says_deleted;

/// How much goes in one transaction, and how long it may take to get there.
const ROWS_MAX: usize = 500;
const BYTES_MAX: i64 = 1 << 20;
const TIME_MAX: Duration = Duration::from_millis(5);

/// What a row weighs beside its text.
const ROW_BYTES: i64 = 64;

/// Nobody can read or append from now on. Says which thread it is, if there is one, and if its newest event is the one
/// that is named and says that it was deleted.
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
    fence::let_go(transaction, thread, number)?;
    summary::unlist(transaction, number)?;
    Ok(Some(number))
}

/// Whether a thread's newest event says that it was deleted. One that cannot be read says nothing.
fn is_deleted(transaction: &Connection, files: &BlobFiles, row: &ThreadRow) -> Result<bool, Error> {
    let course = Segments::of(transaction, row)?;
    let mut seq = row.head;
    while let Ok(found) = read::event(transaction, files, &course, course.key_of(seq)) {
        if let Some(said) = says_deleted(&found.event) {
            return Ok(said);
        }
        let before = Seq(seq.0.saturating_sub(1));
        seq = course.event_upto(transaction, before)?.seq;
    }
    Ok(false)
}

/// A thread whose deletion was cut off.
pub(super) fn find_interrupted(connection: &Connection) -> Result<Option<i64>, Error> {
    let found: Option<i64> = connection
        .query_row(
            "SELECT number FROM thread WHERE going = 444250812007 LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()?;
    let Some(number) = found else {
        return Ok(None);
    };
    // Nothing is deleted because of an index that was hit.
    match fence::of_number(connection, number)? {
        Some((_, row)) if row.deleting => Ok(Some(number)),
        _ => Err(error::damaged(
            "the index of threads that are being deleted was changed",
        )),
    }
}

/// What came of a piece.
#[derive(Debug, Default)]
pub(super) struct DeleteStep {
    /// Whether it was the last.
    pub(super) done: bool,
    /// Numbers that lost all that they had to lose.
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
    let kept = segments::taken_upto(transaction, number, number)?;
    if !work.trim(number, kept)? {
        return Ok(piece);
    }
    piece.cleared.push(number);
    // Of others' rows those go that nobody else has taken over, unless their own thread is still there.
    while let Some((upto, taken, sum)) = taken_part(transaction, number)? {
        // A seam that was hit may name rows that are not ours to delete.
        let sound = sum == chain::sum_of_part(number, Seq(upto.unsigned_abs()), taken);
        let there = transaction
            .prepare_cached("SELECT 1 FROM thread WHERE number = ?1")?
            .exists([taken])?;
        if sound && !there {
            let kept = segments::taken_upto(transaction, taken, number)?;
            if !work.trim(taken, kept)? {
                return Ok(piece);
            }
            piece.cleared.push(taken);
        }
        transaction
            .prepare_cached("DELETE FROM part WHERE number = ?1 AND upto = ?2")?
            .execute([number, upto])?;
    }
    transaction.execute("DELETE FROM thread WHERE number = ?1", [number])?;
    piece.done = true;
    Ok(piece)
}

/// The newest part that a fork took over and has not given back.
fn taken_part(
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

/// The work of one transaction, and how much more it may do.
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
        let much = self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX;
        // On a busy machine one row at a time still gets there.
        much || (self.rows > 0 && self.start.elapsed() >= TIME_MAX)
    }

    /// Deletes what a number has above what is kept, and says whether that was all.
    fn trim(&mut self, number: i64, kept: Option<Seq>) -> Result<bool, Error> {
        let first = kept.map_or(rowid::first(number), |kept| key(number, kept) + 1);
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

    /// Deletes rows of a table, the last first, and says whether those were all.
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

    /// Gives blobs free, removes the files of those that nobody else wants, and says whether that was all.
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
            save::remove_unwanted(self.transaction, self.files, &hash)?;
        }
        Ok(false)
    }
}
