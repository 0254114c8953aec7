//! What the writer has before it, and the work on it.

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
use crate::local::write_conn::{TransactionFailure, WriteConn, nothing};

/// How much goes into one transaction, and how long it may take to get there.
const BYTES_MAX: usize = 1 << 20;
const TIME_MAX: Duration = Duration::from_millis(5);

/// A write that takes this long had to wait for the disk; for a while then nothing is written on the spot.
const SLOW: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_secs(1);

/// What the writer has before it.
#[derive(Debug)]
pub(super) struct WriterState {
    pub(super) conn: WriteConn,
    pub(super) files: BlobFiles,
    pub(super) jobs: BackgroundJobs,
    /// Who keeps the words that can be searched for.
    pub(super) signal: IndexSignal,
    /// Until when nothing is written on the spot.
    pub(super) pause: Option<Instant>,
}

/// What came of a write that was committed.
enum WriteOutcome {
    Stored(AppendOutcome),
    Saved,
    Forked(Result<ForkProgress, ForkError>),
    Deleting(Option<i64>),
}

impl WriterState {
    /// Appends in a transaction of its own, if that takes no waiting; nothing if it must be done by who may
    /// wait, and is not done.
    pub(super) fn append_now(&mut self, append: &Append) -> Option<Result<Seq, AppendError>> {
        let start = Instant::now();
        if self.pause.is_some_and(|until| start < until) || !self.conn.begin_now() {
            return None;
        }
        let (connection, known) = self.conn.parts().ok()?;
        let Ok(outcome) = append.run(connection, &self.files, known) else {
            // Whoever tries again finds out what is wrong.
            self.conn.roll_back();
            return None;
        };
        let committed = self.conn.commit(append.bytes());
        let end = Instant::now();
        self.pause = (end - start >= SLOW).then_some(end + PAUSE);
        Some(match committed {
            Ok(()) => outcome.map(|appended| appended.head),
            Err(failed) => Err(failed.error),
        })
    }

    /// Takes up what was left undone, and says whether there is something.
    pub(super) fn wake(&mut self) -> bool {
        self.jobs.wake();
        !self.jobs.is_empty()
    }

    /// Does a piece of what nobody waits for, and everything else; says whether something is left.
    pub(super) fn work(&mut self, group: &mut Vec<WriteRequest>) -> bool {
        if !self.jobs.is_empty() {
            self.run_job();
        }
        self.work_off(group);
        self.jobs.tidy();
        !self.jobs.is_empty()
    }

    /// Commits what is there, in as few transactions as the bounds allow.
    fn work_off(&mut self, group: &mut Vec<WriteRequest>) {
        let mut rest = std::mem::take(group);
        while !rest.is_empty() {
            let (taken, outcome) = self.transact(&rest);
            let done: Vec<WriteRequest> = rest.drain(..taken).collect();
            match outcome {
                Ok(outcomes) => {
                    for (write, outcome) in done.into_iter().zip(outcomes) {
                        self.answer(write, outcome);
                    }
                }
                // One that cannot be written must not take the others with it.
                Err(failed) if taken > 1 && failed.by_one => {
                    for write in done {
                        let (_, outcome) = self.transact(std::slice::from_ref(&write));
                        let outcome = outcome.and_then(|mut one| one.pop().ok_or_else(nothing));
                        self.answer(write, outcome.unwrap_or_else(|failed| Err(failed.error)));
                    }
                }
                Err(failed) => {
                    for write in done {
                        self.answer(write, Err(failed.error.clone()));
                    }
                }
            }
            self.conn.checkpoint();
        }
    }

    /// One transaction over as many writes as fit; says how many those were and what came of them.
    fn transact(
        &mut self,
        writes: &[WriteRequest],
    ) -> (
        usize,
        Result<Vec<Result<WriteOutcome, AppendError>>, TransactionFailure>,
    ) {
        let classes = writes.iter().map(|write| match write {
            WriteRequest::Append(append, _) => append.class,
            // A fork is nothing before its last piece.
            WriteRequest::Fork(fork, _) if fork.more => Class::Process,
            WriteRequest::Fork(..) | WriteRequest::Delete(..) => Class::Power,
            WriteRequest::Base(..) | WriteRequest::Blob(..) => Class::Process,
        });
        let class = classes.max().unwrap_or(Class::Process);
        if let Err(failed) = self.conn.begin(class) {
            return (writes.len(), Err(failed));
        }
        let (connection, known) = match self.conn.parts() {
            Ok(parts) => parts,
            Err(failed) => return (writes.len(), Err(failed)),
        };
        let start = Instant::now();
        let mut bytes = 0;
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            let outcome = match write {
                WriteRequest::Append(append, _) => {
                    bytes += append.bytes();
                    let outcome = append.run(connection, &self.files, known);
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
                    known.forget();
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
        let taken = outcomes.len();
        (taken, self.conn.commit(bytes).map(|()| outcomes))
    }

    fn answer(&mut self, write: WriteRequest, outcome: Result<WriteOutcome, AppendError>) {
        // Whoever no longer waits for the answer does not need it.
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
                let _ = answer.send(Err(AppendError::Unknown("answered amiss".to_owned())));
            }
            (WriteRequest::Fork(_, answer), Ok(_)) => {
                let _ = answer.send(Err(AppendError::Unknown("answered amiss".to_owned())));
            }
        }
    }

    /// One piece of the work that nobody waits for, in a transaction of its own.
    fn run_job(&mut self) {
        let Some(mut chore) = self.jobs.next() else {
            return;
        };
        let done = self.conn.begin(Class::Process).and_then(|()| {
            let (connection, _) = self.conn.parts()?;
            match chore.piece(connection, &self.files) {
                Ok(over) => self.conn.commit(0).map(|()| over),
                Err(error) => {
                    self.conn.roll_back();
                    Err(error::write(&error).into())
                }
            }
        });
        match done {
            Ok(false) => self.jobs.again(chore),
            Ok(true) => {
                if chore.leaves_traces() {
                    // Pages that held what is gone are still in the log.
                    self.conn.clear();
                }
                for number in chore.cleared() {
                    self.signal.notify(number);
                }
                chore.finish(Ok(()));
            }
            Err(failed) => chore.finish(Err(failed.error)),
        }
    }

    fn notify_indexer(&self, number: Option<i64>) {
        if let Some(number) = number {
            self.signal.notify(number);
        }
    }
}
