//! A thread begins with another's records. Its rows stay where they are; only open text is copied.
//!
//! If there is much of that, it is copied in pieces, and until the last one the thread is as one that is being
//! deleted: nobody reads it, and if it breaks off it is cleared away.

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
use super::{read, summary};

/// How much open text goes in one transaction.
const BYTES_MAX: usize = 512 << 10;

/// A fork to make, or a piece of it.
#[derive(Clone, Debug)]
pub(super) struct Fork {
    pub(super) from: ThreadId,
    pub(super) at: Seq,
    pub(super) to: ThreadId,
    /// The number of `from` when its open text was read.
    pub(super) number: i64,
    /// What a list would show of `from` at that record.
    pub(super) summary: Option<Box<Summary>>,
    /// Open text.
    pub(super) open: Vec<Record>,
    /// What came of the pieces before this one; nothing if it is the first.
    pub(super) before: Option<ForkProgress>,
    /// Whether there are more to come.
    pub(super) more: bool,
}

/// What came of a fork, so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForkProgress {
    /// The new thread's head.
    pub(super) head: Seq,
    number: i64,
    /// How many deltas were copied.
    deltas: i64,
}

impl Fork {
    /// About how much it adds to a transaction.
    pub(super) fn bytes(&self) -> usize {
        self.open.iter().map(bytes).sum()
    }

    /// Makes it, or says why not, before anything is written.
    pub(super) fn run(
        &self,
        transaction: &Connection,
    ) -> Result<Result<ForkProgress, ForkError>, Error> {
        let begun = match self.before {
            None => self.begin(transaction)?,
            Some(before) => self.go_on(transaction, before)?.map(|()| before),
        };
        let mut forked = match begun {
            Ok(begun) => begun,
            Err(refused) => return Ok(Err(refused)),
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
        let head = fence::head(transaction, self.from, &row)?;
        if self.at > head {
            return Ok(Err(ForkError::Beyond { head }));
        }
        let course = Segments::of(transaction, &row)?;
        let last = course.event_upto(transaction, self.at)?;
        let mut fork = ThreadRow {
            head: last.seq,
            deleting: self.more,
            forked: true,
            ends: course.ends_upto(transaction, last.seq)?,
            listed: None,
            ..row
        };
        fence::begin(transaction, self.to, &mut fork)?;
        // Numbers may skip, so the fork's own may begin before the one that it was asked to begin after.
        for part in course.between(Seq(1), last.seq) {
            segments::take(transaction, fork.number, part)?;
        }
        Ok(Ok(ForkProgress {
            head: last.seq,
            number: fork.number,
            deltas: 0,
        }))
    }

    /// Looks whether what was begun is still all there.
    fn go_on(
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
        let there = row.is_some_and(|row| row.deleting && row.number == before.number);
        if there && deltas == before.deltas {
            return Ok(Ok(()));
        }
        let what = "what was copied so far was cleared away as if it had broken off; try again";
        Ok(Err(AppendError::Unavailable(what.to_owned()).into()))
    }

    /// From now on it is a thread.
    fn finish(&self, transaction: &Connection, number: i64) -> Result<(), Error> {
        let gone = || error::damaged("the row of a fork vanished while it was made");
        let mut row = fence::row(transaction, self.to)?.ok_or_else(gone)?;
        row.deleting = false;
        if let Some(summary) = &self.summary {
            let listed = summary::begin_list(transaction, number, self.to, summary)?;
            row.listed = Some(listed);
        }
        fence::move_fence(transaction, self.to, row.head, &row)
    }
}

/// A thread's number, and the deltas up to a record of items that are open.
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

/// Open text as it goes into transactions; one of them, if there is none.
pub(super) fn pieces(open: Vec<Record>) -> Vec<Vec<Record>> {
    let mut pieces = vec![Vec::new()];
    let mut room = BYTES_MAX;
    for record in open {
        let bytes = bytes(&record);
        let mut piece = pieces.pop().unwrap_or_default();
        if piece.len() == DELTAS_MAX || (bytes > room && !piece.is_empty()) {
            pieces.push(std::mem::take(&mut piece));
            room = BYTES_MAX;
        }
        room = room.saturating_sub(bytes);
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
