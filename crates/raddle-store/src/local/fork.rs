//! Forks: a thread that begins with another thread's records. Those rows are shared; only open text
//! is copied.
//!
//! Much open text is copied in pieces. Until the last piece the new thread is marked as being
//! deleted: it cannot be read, and if the fork is interrupted it is deleted.

#[cfg(test)]
mod tests;

use raddle_core::ports::{AppendError, ForkError, ReadError, Summary};
use raddle_core::{Record, RecordBody, Seq, ThreadId};
use rusqlite::{Connection, Error};

use super::append::{DELTAS_MAX, write_delta};
use super::error;
use super::fence::{self, ThreadRow};
use super::rowid::{self, key};
use super::segments::{self, Segments};
use super::{head, read, summary};

/// Limit: open text in one transaction of a fork, at most 1,000 pieces; beyond it, the rest follows
/// in the next transaction; the fork appears after the last.
const BYTES_MAX: usize = 512 << 10;

/// A fork to create, or a piece of it.
#[derive(Clone, Debug)]
pub(super) struct Fork {
    pub(super) from: ThreadId,
    pub(super) at: Seq,
    pub(super) to: ThreadId,
    /// Number of `from` when its open text was read.
    pub(super) number: i64,
    /// Summary of `from` at that record.
    pub(super) summary: Option<Box<Summary>>,
    /// Deltas of items that are not settled.
    pub(super) open: Vec<Record>,
    /// Result of the previous pieces; `None` for the first.
    pub(super) before: Option<ForkProgress>,
    /// Whether more pieces follow.
    pub(super) more: bool,
}

/// Result of a fork so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForkProgress {
    /// Head of the new thread.
    pub(super) head: Seq,
    number: i64,
    /// Number of deltas that were copied.
    deltas: i64,
}

impl Fork {
    /// Returns the approximate number of bytes that this adds to a transaction.
    pub(super) fn bytes(&self) -> usize {
        self.open.iter().map(bytes).sum()
    }

    /// Runs the piece, or returns the rejection before anything is written.
    pub(super) fn run(
        &self,
        transaction: &Connection,
    ) -> Result<Result<ForkProgress, ForkError>, Error> {
        let result = match self.before {
            None => self.begin(transaction)?,
            Some(before) => self.check_progress(transaction, before)?.map(|()| before),
        };
        let mut forked = match result {
            Ok(progress) => progress,
            Err(rejection) => return Ok(Err(rejection)),
        };
        for record in &self.open {
            if let RecordBody::Delta(delta) = &record.body {
                write_delta(transaction, forked.number, self.to, record, delta)?;
                forked.head = forked.head.max(record.seq);
                forked.deltas += 1;
            }
        }
        if !self.more {
            self.finish(transaction, forked.number)?;
        }
        Ok(Ok(forked))
    }

    fn begin(&self, transaction: &Connection) -> Result<Result<ForkProgress, ForkError>, Error> {
        if fence::row(transaction, self.to)?.is_some() {
            return Ok(Err(ForkError::Taken));
        }
        let row = fence::row(transaction, self.from)?;
        let Some(row) = row.filter(|row| !row.deleting && row.number == self.number) else {
            return Ok(Err(ReadError::NotFound.into()));
        };
        let head = head::of_row(transaction, self.from, &row)?;
        if self.at > head {
            return Ok(Err(ForkError::Beyond { head }));
        }
        let segments = Segments::of(transaction, &row)?;
        let last = segments.event_upto(transaction, self.at)?;
        let mut fork = ThreadRow {
            head: last.seq,
            deleting: self.more,
            forked: true,
            ends: segments.ends_upto(transaction, last.seq)?,
            listed: None,
            ..row
        };
        fence::begin(transaction, self.to, &mut fork)?;
        // Record numbers may have gaps, so the fork's own records may begin below `at`.
        for part in segments.between(Seq(1), last.seq) {
            segments::share(transaction, fork.number, part)?;
        }
        Ok(Ok(ForkProgress {
            head: last.seq,
            number: fork.number,
            deltas: 0,
        }))
    }

    /// Checks that the pieces copied so far still exist.
    fn check_progress(
        &self,
        transaction: &Connection,
        before: ForkProgress,
    ) -> Result<Result<(), ForkError>, Error> {
        let row = fence::row(transaction, self.to)?;
        let deltas: i64 = transaction
            .prepare_cached("SELECT count(*) FROM delta WHERE at BETWEEN ?1 AND ?2")?
            .query_row(
                [rowid::first(before.number), rowid::last(before.number)],
                |row| row.get(0),
            )?;
        let exists = row.is_some_and(|row| row.deleting && row.number == before.number);
        if exists && deltas == before.deltas {
            return Ok(Ok(()));
        }
        let what = "the partial fork was deleted as an interrupted one; try again";
        Ok(Err(AppendError::Unavailable(what.to_owned()).into()))
    }

    /// Completes the fork: from now on it is a normal thread.
    fn finish(&self, transaction: &Connection, number: i64) -> Result<(), Error> {
        let vanished = || error::damaged("the row of a fork is missing");
        let mut row = fence::row(transaction, self.to)?.ok_or_else(vanished)?;
        row.deleting = false;
        if let Some(summary) = &self.summary {
            let listed = summary::begin_list(transaction, number, self.to, summary)?;
            row.listed = Some(listed);
        }
        fence::move_fence(transaction, self.to, row.head, &row)
    }
}

/// Returns a thread's number, and the deltas of its open items up to a record.
pub(super) fn open_text(
    connection: &Connection,
    from: ThreadId,
    at: Seq,
) -> Result<(i64, Vec<Record>), ReadError> {
    let row = read::existing(connection, from)?;
    let fail = |error| error::read(error, at);
    let mut statement = connection
        .prepare_cached(
            "SELECT at, time, item, part, offset, sum, text FROM delta
             WHERE at BETWEEN ?1 AND ?2 AND NOT EXISTS
                 (SELECT 1 FROM leftover WHERE leftover.at BETWEEN delta.at AND ?3
                  AND leftover.item = delta.item)
             ORDER BY at",
        )
        .map_err(fail)?;
    let (first, last) = (rowid::first(row.number), rowid::last(row.number));
    let range = [first, key(row.number, at), last];
    let mut rows = statement.query(range).map_err(fail)?;
    let mut open = Vec::new();
    while let Some(row) = rows.next().map_err(fail)? {
        open.push(read::checked_delta(from, row, at)?.0);
    }
    Ok((row.number, open))
}

/// Splits open text into pieces of one transaction each. Returns one empty piece if there is none.
pub(super) fn pieces(open: Vec<Record>) -> Vec<Vec<Record>> {
    let mut pieces = vec![Vec::new()];
    let mut capacity = BYTES_MAX;
    for record in open {
        let bytes = bytes(&record);
        let mut piece = pieces.pop().unwrap_or_default();
        if piece.len() == DELTAS_MAX || (bytes > capacity && !piece.is_empty()) {
            pieces.push(std::mem::take(&mut piece));
            capacity = BYTES_MAX;
        }
        capacity = capacity.saturating_sub(bytes);
        piece.push(record);
        pieces.push(piece);
    }
    pieces
}

fn bytes(record: &Record) -> usize {
    match &record.body {
        RecordBody::Delta(delta) => delta.text.len() + 100,
        RecordBody::Event(_) => 0,
    }
}
