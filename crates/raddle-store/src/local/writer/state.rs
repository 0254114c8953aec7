//! State of the writer thread, and its work.

use std::time::{Duration, Instant};

use raddle_core::ports::{AppendError, ForkError};
use raddle_core::{Class, Seq};

use super::WriteRequest;
use crate::local::append::{Append, AppendOutcome};
use crate::local::background_jobs::BackgroundJobs;
use crate::local::error;
use crate::local::files::BlobFiles;
use crate::local::fork::ForkProgress;
use crate::local::search::IndexSignal;
use crate::local::write_conn::{TransactionFailure, WriteConn, closed};

/// Limits of one transaction: bytes, and time.
const BYTES_MAX: usize = 1 << 20;
const TIME_MAX: Duration = Duration::from_millis(5);

/// A direct write that takes this long was blocked by the disk. For a pause, no more are tried.
const SLOW: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_secs(1);

/// State of the writer thread.
#[derive(Debug)]
pub(super) struct WriterState {
    pub(super) conn: WriteConn,
    pub(super) files: BlobFiles,
    pub(super) jobs: BackgroundJobs,
    /// Signal to the search indexer.
    pub(super) signal: IndexSignal,
    /// End of the pause of direct writes.
    pub(super) pause: Option<Instant>,
}

/// Result of a committed write.
enum WriteOutcome {
    Stored(AppendOutcome),
    Saved,
    Forked(Result<ForkProgress, ForkError>),
    Deleting(Option<i64>),
}

impl WriterState {
    /// Appends in its own transaction, if that does not block. Returns `None` if nothing was done
    /// and the writer thread must append.
    pub(super) fn append_now(&mut self, append: &Append) -> Option<Result<Seq, AppendError>> {
        let start = Instant::now();
        if self.pause.is_some_and(|until| start < until) || !self.conn.begin_now() {
            return None;
        }
        let (connection, heads) = self.conn.parts().ok()?;
        let Ok(outcome) = append.run(connection, &self.files, heads) else {
            // The retry on the writer thread reports the error.
            self.conn.roll_back();
            return None;
        };
        let committed = self.conn.commit(append.bytes());
        let end = Instant::now();
        self.pause = (end - start >= SLOW).then_some(end + PAUSE);
        Some(match committed {
            Ok(()) => outcome.map(|appended| appended.head),
            Err(failure) => Err(failure.error),
        })
    }

    /// Queues unfinished work of a former process. Returns whether there is any.
    pub(super) fn wake(&mut self) -> bool {
        self.jobs.wake();
        !self.jobs.is_empty()
    }

    /// Runs a piece of a background job, then all writes. Returns whether jobs are left.
    pub(super) fn work(&mut self, group: &mut Vec<WriteRequest>) -> bool {
        if !self.jobs.is_empty() {
            self.run_job();
        }
        self.commit_all(group);
        self.jobs.tidy();
        !self.jobs.is_empty()
    }

    /// Commits the writes in as few transactions as the limits allow.
    fn commit_all(&mut self, group: &mut Vec<WriteRequest>) {
        let mut rest = std::mem::take(group);
        while !rest.is_empty() {
            let (count, outcome) = self.transact(&rest);
            let done: Vec<WriteRequest> = rest.drain(..count).collect();
            match outcome {
                Ok(outcomes) => {
                    for (write, outcome) in done.into_iter().zip(outcomes) {
                        self.answer(write, outcome);
                    }
                }
                // One failing write must not fail the others.
                Err(failure) if count > 1 && failure.by_one => {
                    for write in done {
                        let (_, outcome) = self.transact(std::slice::from_ref(&write));
                        let outcome = outcome.and_then(|mut one| one.pop().ok_or_else(closed));
                        self.answer(write, outcome.unwrap_or_else(|failure| Err(failure.error)));
                    }
                }
                Err(failure) => {
                    for write in done {
                        self.answer(write, Err(failure.error.clone()));
                    }
                }
            }
            self.conn.checkpoint();
        }
    }

    /// Runs one transaction over as many writes as fit. Returns their number and their results.
    fn transact(
        &mut self,
        writes: &[WriteRequest],
    ) -> (
        usize,
        Result<Vec<Result<WriteOutcome, AppendError>>, TransactionFailure>,
    ) {
        let classes = writes.iter().map(|write| match write {
            WriteRequest::Append(append, _) => append.class,
            // A fork is invisible before its last piece.
            WriteRequest::Fork(fork, _) if fork.more => Class::Process,
            WriteRequest::Fork(..) | WriteRequest::Delete(..) => Class::Power,
            WriteRequest::Base(..) | WriteRequest::Blob(..) => Class::Process,
        });
        let class = classes.max().unwrap_or(Class::Process);
        if let Err(failure) = self.conn.begin(class) {
            return (writes.len(), Err(failure));
        }
        let (connection, heads) = match self.conn.parts() {
            Ok(parts) => parts,
            Err(failure) => return (writes.len(), Err(failure)),
        };
        let start = Instant::now();
        let mut bytes = 0;
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            let outcome = match write {
                WriteRequest::Append(append, _) => {
                    bytes += append.bytes();
                    let outcome = append.run(connection, &self.files, heads);
                    outcome.map(|outcome| outcome.map(WriteOutcome::Stored))
                }
                WriteRequest::Base(base, _) => {
                    bytes += base.bytes();
                    base.run(connection).map(|()| Ok(WriteOutcome::Saved))
                }
                WriteRequest::Blob(blob, _) => {
                    let outcome = blob.run(connection, &self.files);
                    outcome.map(|outcome| outcome.map(|()| WriteOutcome::Saved))
                }
                WriteRequest::Fork(fork, _) => {
                    bytes += fork.bytes();
                    fork.run(connection).map(|it| Ok(WriteOutcome::Forked(it)))
                }
                WriteRequest::Delete(thread, head, _) => {
                    heads.forget();
                    let files = &self.files;
                    let marked = crate::local::delete::mark(connection, files, *thread, *head);
                    marked.map(|row| Ok(WriteOutcome::Deleting(row)))
                }
            };
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    let error = error::write(&error);
                    let by_one = true;
                    self.conn.roll_back();
                    return (
                        outcomes.len() + 1,
                        Err(TransactionFailure { error, by_one }),
                    );
                }
            }
            if bytes >= BYTES_MAX || start.elapsed() >= TIME_MAX {
                break;
            }
        }
        let count = outcomes.len();
        (count, self.conn.commit(bytes).map(|()| outcomes))
    }

    fn answer(&mut self, write: WriteRequest, outcome: Result<WriteOutcome, AppendError>) {
        // The caller may have stopped waiting.
        match (write, outcome) {
            (WriteRequest::Append(_, answer), Ok(WriteOutcome::Stored(appended))) => {
                if appended.leftovers {
                    self.jobs.leftovers();
                }
                self.notify_indexer(appended.words);
                let _ = answer.send(Ok(appended.head));
            }
            (WriteRequest::Append(_, answer), Err(error)) => {
                let _ = answer.send(Err(error));
            }
            (WriteRequest::Fork(_, answer), Ok(WriteOutcome::Forked(outcome))) => {
                let _ = answer.send(Ok(outcome));
            }
            (WriteRequest::Fork(_, answer), Err(error)) => {
                let _ = answer.send(Err(error));
            }
            (WriteRequest::Delete(_, _, answer), Ok(WriteOutcome::Deleting(Some(number)))) => {
                self.jobs.delete(number, answer);
            }
            (
                WriteRequest::Base(_, answer)
                | WriteRequest::Blob(_, answer)
                | WriteRequest::Delete(_, _, answer),
                outcome,
            ) => {
                let _ = answer.send(outcome.map(|_| ()));
            }
            (WriteRequest::Append(_, answer), Ok(_)) => {
                let _ = answer.send(Err(AppendError::Unknown(
                    "internal error: the result does not match the request".to_owned(),
                )));
            }
            (WriteRequest::Fork(_, answer), Ok(_)) => {
                let _ = answer.send(Err(AppendError::Unknown(
                    "internal error: the result does not match the request".to_owned(),
                )));
            }
        }
    }

    /// Runs one piece of a background job, in its own transaction.
    fn run_job(&mut self) {
        let Some(mut job) = self.jobs.next() else {
            return;
        };
        let done = self.conn.begin(Class::Process).and_then(|()| {
            let (connection, _) = self.conn.parts()?;
            match job.piece(connection, &self.files) {
                Ok(finished) => self.conn.commit(0).map(|()| finished),
                Err(error) => {
                    self.conn.roll_back();
                    Err(error::write(&error).into())
                }
            }
        });
        match done {
            Ok(false) => self.jobs.again(job),
            Ok(true) => {
                if job.leaves_traces() {
                    // Pages with deleted content are still in the WAL.
                    self.conn.clear();
                }
                for number in job.cleared() {
                    self.signal.notify(number);
                }
                job.finish(Ok(()));
            }
            Err(failure) => job.finish(Err(failure.error)),
        }
    }

    fn notify_indexer(&self, number: Option<i64>) {
        if let Some(number) = number {
            self.signal.notify(number);
        }
    }
}
