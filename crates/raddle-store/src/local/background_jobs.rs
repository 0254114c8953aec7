//! Background work of the writer: no caller waits for it, or it is too long for one transaction.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use raddle_core::ports::AppendError;
use rusqlite::{Connection, Error, OptionalExtension};

use super::append::forget;
use super::files::BlobFiles;
use super::writer::WriteReply;
use super::{delete, save};

/// Interval between searches for blobs that were stored and never referred to.
const TIDY_EVERY: Duration = Duration::from_secs(10 * 60);

/// Queue of jobs, oldest first.
#[derive(Debug, Default)]
pub(super) struct BackgroundJobs {
    waiting: VecDeque<BackgroundJob>,
    /// Time of the last search for unreferenced blobs.
    tidied: Option<Instant>,
}

/// A job that runs in pieces.
#[derive(Debug)]
pub(super) struct BackgroundJob {
    task: JobKind,
    /// Numbers of the threads whose rows were deleted.
    cleared: BTreeSet<i64>,
}

#[derive(Debug)]
enum JobKind {
    Delete(i64, Option<WriteReply<()>>),
    /// Resumes the deletions that a former process left unfinished.
    Resume,
    /// Deletes the deltas that were too many for one transaction.
    Leftovers,
    /// Deletes blobs that were stored and never referred to.
    Unnamed,
    /// Deletes files without any reference, from this directory on; `None` until the sweep is due.
    Sweep(Option<u8>),
}

impl BackgroundJobs {
    /// Queues the work that a former process may have left unfinished.
    pub(super) fn wake(&mut self) {
        self.push(JobKind::Leftovers);
        self.tidy();
    }

    /// Queues the search for unreferenced data, once per `TIDY_EVERY`.
    pub(super) fn tidy(&mut self) {
        if self.tidied.is_some_and(|last| last.elapsed() < TIDY_EVERY) {
            return;
        }
        self.tidied = Some(Instant::now());
        // This also resumes deletions of this process that failed on the way.
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

    /// Queues the deletion of leftover deltas.
    pub(super) fn leftovers(&mut self) {
        let mut waiting = self.waiting.iter();
        if !waiting.any(|job| matches!(job.task, JobKind::Leftovers)) {
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

    /// Queues a job again, behind the others.
    pub(super) fn again(&mut self, job: BackgroundJob) {
        self.waiting.push_back(job);
    }
}

impl BackgroundJob {
    /// Runs a piece. Returns whether it was the last.
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
            JobKind::Unnamed => save::expire_put(transaction, files).map(|deleted| !deleted),
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

    /// Returns the numbers of the threads whose rows it deleted, wholly or partly.
    pub(super) fn cleared(&self) -> impl Iterator<Item = i64> + '_ {
        self.cleared.iter().copied()
    }

    /// Whether the job deleted rows that must not be found anywhere, not even in the WAL.
    pub(super) fn leaves_traces(&self) -> bool {
        !self.cleared.is_empty()
    }

    /// Sends the result to the waiting caller.
    pub(super) fn finish(self, outcome: Result<(), AppendError>) {
        if let JobKind::Delete(_, Some(answer)) = self.task {
            // The thread is marked as being deleted by now, and the rest of its rows is deleted
            // later.
            let outcome = outcome.map_err(|error| AppendError::Unknown(error.to_string()));
            // The caller may have stopped waiting.
            let _ = answer.send(outcome);
        }
    }
}

/// Deletes some leftover deltas. Returns whether there are no more.
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
