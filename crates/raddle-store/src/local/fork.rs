//! A thread begins with another's records. Its rows stay where they are; only open text is copied.

use raddle_core::ports::{ForkError, ReadError, Summary};
use raddle_core::{Body, Seq, ThreadId};
use rusqlite::{Connection, Error};

use super::append::write_delta;
use super::course::{self, Course};
use super::fence::{self, Row};
use super::key::{self, key};
use super::{project, read};

/// A fork to make.
#[derive(Debug)]
pub(super) struct Fork {
    pub(super) from: ThreadId,
    pub(super) at: Seq,
    pub(super) to: ThreadId,
    /// What a list would show of `from` at that record.
    pub(super) summary: Option<Box<Summary>>,
}

impl Fork {
    /// Makes it, or says why not, before anything is written. Answers with the new thread's head.
    pub(super) fn run(&self, transaction: &Connection) -> Result<Result<Seq, ForkError>, Error> {
        if fence::row(transaction, self.to)?.is_some() {
            return Ok(Err(ForkError::Taken));
        }
        let row = fence::row(transaction, self.from)?;
        let Some(row) = row.filter(|row| !row.going) else {
            return Ok(Err(ReadError::NotFound.into()));
        };
        let head = fence::head(transaction, self.from, &row)?;
        if self.at > head {
            return Ok(Err(ForkError::Beyond { head }));
        }
        let open = match self.open_deltas(transaction, row)? {
            Ok(open) => open,
            Err(error) => return Ok(Err(error.into())),
        };
        let course = Course::of(transaction, &row)?;
        let last = course.event_upto(transaction, self.at)?;
        let mut fork = Row {
            head: last.seq,
            forked: true,
            ends: course.ends_upto(transaction, last.seq)?,
            listed: None,
            ..row
        };
        fence::begin(transaction, self.to, &mut fork)?;
        let number = fork.number;
        // Numbers may skip, so the fork's own may begin before the one that it was asked to begin after.
        for part in course.parts(Seq(1), last.seq) {
            course::take(transaction, number, part)?;
        }
        let mut head = last.seq;
        for record in &open {
            if let Body::Delta(delta) = &record.body {
                write_delta(transaction, number, self.to, record, delta)?;
                head = head.max(record.seq);
            }
        }
        if let Some(summary) = &self.summary {
            let listed = project::write_summary(transaction, number, self.to, summary)?;
            fork.listed = Some(listed);
            fence::move_fence(transaction, self.to, fork.head, &fork)?;
        }
        Ok(Ok(head))
    }

    /// The deltas of items that are open. An item's text is saved before they are many.
    fn open_deltas(
        &self,
        transaction: &Connection,
        row: Row,
    ) -> Result<Result<Vec<raddle_core::Record>, ReadError>, Error> {
        let mut statement = transaction.prepare_cached(
            "SELECT at, time, item, part, offset, sum, text FROM delta
             WHERE at BETWEEN ?1 AND ?2 AND NOT EXISTS
                 (SELECT 1 FROM leftover WHERE leftover.at BETWEEN delta.at AND ?3
                  AND leftover.item = delta.item)
             ORDER BY at",
        )?;
        let (first, last) = (key::first(row.number), key::last(row.number));
        let mut rows = statement.query([first, key(row.number, self.at), last])?;
        let mut open = Vec::new();
        while let Some(row) = rows.next()? {
            match read::checked_delta(self.from, row, self.at) {
                Ok((record, _)) => open.push(record),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(open))
    }
}
