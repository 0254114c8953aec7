//! Work of the writer that nobody waits for, or that is too long for one transaction.

use std::collections::VecDeque;

use raddle_core::ports::AppendError;
use rusqlite::{Connection, Error, OptionalExtension};

use super::append::forget;
use super::delete;
use super::files::Files;
use super::writer::Answer;

/// What is to be done, oldest first.
#[derive(Debug, Default)]
pub(super) struct Chores(VecDeque<Chore>);

/// Something to be done in pieces.
#[derive(Debug)]
pub(super) enum Chore {
    /// A thread goes.
    Delete(i64, Option<Answer<()>>),
    /// Deletions that a former process left off.
    Resume,
    /// Deltas that were too many to go at once.
    Leftovers,
}

impl Chores {
    /// What a former process may have left off.
    pub(super) fn wake(&mut self) {
        self.0.push_back(Chore::Resume);
        self.0.push_back(Chore::Leftovers);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn delete(&mut self, number: i64, answer: Answer<()>) {
        self.0.push_back(Chore::Delete(number, Some(answer)));
    }

    /// There are deltas to clear away.
    pub(super) fn leftovers(&mut self) {
        if !self.0.iter().any(|chore| matches!(chore, Chore::Leftovers)) {
            self.0.push_back(Chore::Leftovers);
        }
    }

    pub(super) fn next(&mut self) -> Option<Chore> {
        self.0.pop_front()
    }

    /// A chore goes on later, after the others had their turn.
    pub(super) fn again(&mut self, chore: Chore) {
        self.0.push_back(chore);
    }
}

impl Chore {
    /// Does a piece, and says whether it was the last.
    pub(super) fn piece(&mut self, transaction: &Connection, files: &Files) -> Result<bool, Error> {
        match self {
            Self::Delete(number, _) => delete::piece(transaction, files, *number),
            Self::Resume => match delete::going(transaction)? {
                Some(number) => delete::piece(transaction, files, number).map(|_| false),
                None => Ok(true),
            },
            Self::Leftovers => {
                let next = transaction
                    .prepare_cached("SELECT at, item FROM leftover LIMIT 1")?
                    .query_row([], |row| {
                        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
                    })
                    .optional()?;
                let Some((at, item)) = next else {
                    return Ok(true);
                };
                if !forget(transaction, at, &item)? {
                    transaction.execute("DELETE FROM leftover WHERE at = ?1", [at])?;
                }
                Ok(false)
            }
        }
    }

    /// The number of the thread that it deleted.
    pub(super) fn deleted(&self) -> Option<i64> {
        match self {
            Self::Delete(number, _) => Some(*number),
            Self::Resume | Self::Leftovers => None,
        }
    }

    /// Whether what it removed must not be found anywhere.
    pub(super) fn leaves_traces(&self) -> bool {
        matches!(self, Self::Delete(..))
    }

    /// Tells whoever waits.
    pub(super) fn finish(self, outcome: Result<(), AppendError>) {
        if let Self::Delete(_, Some(answer)) = self {
            // Whoever no longer waits does not need to know.
            let _ = answer.send(outcome);
        }
    }
}
