//! Work of the writer that nobody waits for, or that is too long for one transaction.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use raddle_core::ports::AppendError;
use rusqlite::{Connection, Error, OptionalExtension};

use super::append::forget;
use super::files::BlobFiles;
use super::writer::WriteReply;
use super::{delete, save};

/// How often what was put and never named is looked for.
const TIDY_EVERY: Duration = Duration::from_secs(10 * 60);

/// What is to be done, oldest first.
#[derive(Debug, Default)]
pub(super) struct BackgroundJobs {
    waiting: VecDeque<BackgroundJob>,
    /// When it was last noted that unnamed blobs are to be looked for.
    tidied: Option<Instant>,
}

/// Something to be done in pieces.
#[derive(Debug)]
pub(super) struct BackgroundJob {
    task: JobKind,
    /// Numbers whose rows went.
    cleared: BTreeSet<i64>,
}

#[derive(Debug)]
enum JobKind {
    /// A thread goes.
    Delete(i64, Option<WriteReply<()>>),
    /// Deletions that a former process left off.
    Resume,
    /// Deltas that were too many to go at once.
    Leftovers,
    /// Blobs that were put and never named.
    Unnamed,
    /// Files that nothing names; from this heap on, once it is known that it is time.
    Sweep(Option<u8>),
}

impl BackgroundJobs {
    /// What a former process may have left off.
    pub(super) fn wake(&mut self) {
        self.push(JobKind::Leftovers);
        self.tidy();
    }

    /// Looks for what nothing names, every now and then.
    pub(super) fn tidy(&mut self) {
        if self.tidied.is_some_and(|last| last.elapsed() < TIDY_EVERY) {
            return;
        }
        self.tidied = Some(Instant::now());
        // Also ours, if something went wrong on the way.
        self.push(JobKind::Resume);
        self.push(JobKind::Unnamed);
        self.push(JobKind::Sweep(None));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn delete(&mut self, number: i64, answer: WriteReply<()>) {
        self.push(JobKind::Delete(number, Some(answer)));
    }

    /// There are deltas to clear away.
    pub(super) fn leftovers(&mut self) {
        let mut waiting = self.waiting.iter();
        if !waiting.any(|chore| matches!(chore.task, JobKind::Leftovers)) {
            self.push(JobKind::Leftovers);
        }
    }

    fn push(&mut self, task: JobKind) {
        let cleared = BTreeSet::new();
        self.waiting.push_back(BackgroundJob { task, cleared });
    }

    pub(super) fn next(&mut self) -> Option<BackgroundJob> {
        self.waiting.pop_front()
    }

    /// A chore goes on later, after the others had their turn.
    pub(super) fn again(&mut self, chore: BackgroundJob) {
        self.waiting.push_back(chore);
    }
}

impl BackgroundJob {
    /// Does a piece, and says whether it was the last.
    pub(super) fn piece(
        &mut self,
        transaction: &Connection,
        files: &BlobFiles,
    ) -> Result<bool, Error> {
        match &mut self.task {
            JobKind::Delete(number, _) => {
                let piece = delete::piece(transaction, files, *number)?;
                self.cleared.extend(piece.cleared);
                Ok(piece.done)
            }
            JobKind::Resume => {
                let Some(number) = delete::find_interrupted(transaction)? else {
                    return Ok(true);
                };
                let piece = delete::piece(transaction, files, number)?;
                self.cleared.extend(piece.cleared);
                Ok(false)
            }
            JobKind::Leftovers => leftovers(transaction),
            JobKind::Unnamed => save::forget_unnamed(transaction, files).map(|found| !found),
            JobKind::Sweep(heap @ None) => {
                let due = save::is_sweep_due(transaction)?;
                *heap = Some(0);
                Ok(!due)
            }
            JobKind::Sweep(Some(heap)) => {
                save::sweep(transaction, files, *heap)?;
                let next = heap.checked_add(1);
                *heap = next.unwrap_or(*heap);
                Ok(next.is_none())
            }
        }
    }

    /// The numbers whose rows it deleted, all or some.
    pub(super) fn cleared(&self) -> impl Iterator<Item = i64> + '_ {
        self.cleared.iter().copied()
    }

    /// Whether what it removed must not be found anywhere.
    pub(super) fn leaves_traces(&self) -> bool {
        !self.cleared.is_empty()
    }

    /// Tells whoever waits.
    pub(super) fn finish(self, outcome: Result<(), AppendError>) {
        if let JobKind::Delete(_, Some(answer)) = self.task {
            // Whoever no longer waits does not need to know.
            let _ = answer.send(outcome);
        }
    }
}

/// Deletes some deltas that are no longer needed, and says whether there are no more.
fn leftovers(transaction: &Connection) -> Result<bool, Error> {
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
