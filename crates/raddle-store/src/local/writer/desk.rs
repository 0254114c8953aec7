//! What the writer has before it, and the work on it.

use std::time::{Duration, Instant};

use raddle_core::ports::{AppendError, ForkError};
use raddle_core::{Class, Seq};

use super::Write;
use crate::local::append::{Append, Appended};
use crate::local::book::{Book, Failed, nothing};
use crate::local::chores::Chores;
use crate::local::error;
use crate::local::files::Files;
use crate::local::fork::Forked;
use crate::local::search::Bell;

/// How much goes into one transaction, and how long it may take to get there.
const BYTES_MAX: usize = 1 << 20;
const TIME_MAX: Duration = Duration::from_millis(5);

/// A write that takes this long had to wait for the disk; for a while then nothing is written on the spot.
const SLOW: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_secs(1);

/// What the writer has before it.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) book: Book,
    pub(super) files: Files,
    pub(super) chores: Chores,
    /// Who keeps the words that can be searched for.
    pub(super) bell: Bell,
    /// Until when nothing is written on the spot.
    pub(super) pause: Option<Instant>,
}

/// What came of a write that was committed.
enum Done {
    Stored(Appended),
    Kept,
    Forked(Result<Forked, ForkError>),
    Going(Option<i64>),
}

impl Desk {
    /// Appends in a transaction of its own, if that takes no waiting; nothing if it must be done by who may
    /// wait, and is not done.
    pub(super) fn append_now(&mut self, append: &Append) -> Option<Result<Seq, AppendError>> {
        let start = Instant::now();
        if self.pause.is_some_and(|until| start < until) || !self.book.begin_now() {
            return None;
        }
        let (connection, known) = self.book.parts().ok()?;
        let Ok(outcome) = append.run(connection, &self.files, known) else {
            // Whoever tries again finds out what is wrong.
            self.book.roll_back();
            return None;
        };
        let committed = self.book.commit(append.bytes());
        let end = Instant::now();
        self.pause = (end - start >= SLOW).then_some(end + PAUSE);
        Some(match committed {
            Ok(()) => outcome.map(|appended| appended.head),
            Err(failed) => Err(failed.error),
        })
    }

    /// Takes up what was left undone, and says whether there is something.
    pub(super) fn wake(&mut self) -> bool {
        self.chores.wake();
        !self.chores.is_empty()
    }

    /// Does a piece of what nobody waits for, and everything else; says whether something is left.
    pub(super) fn work(&mut self, group: &mut Vec<Write>) -> bool {
        if !self.chores.is_empty() {
            self.chore();
        }
        self.work_off(group);
        self.chores.tidy();
        !self.chores.is_empty()
    }

    /// Commits what is there, in as few transactions as the bounds allow.
    fn work_off(&mut self, group: &mut Vec<Write>) {
        let mut rest = std::mem::take(group);
        while !rest.is_empty() {
            let (taken, outcome) = self.transact(&rest);
            let done: Vec<Write> = rest.drain(..taken).collect();
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
            self.book.tend();
        }
    }

    /// One transaction over as many writes as fit; says how many those were and what came of them.
    fn transact(
        &mut self,
        writes: &[Write],
    ) -> (usize, Result<Vec<Result<Done, AppendError>>, Failed>) {
        let classes = writes.iter().map(|write| match write {
            Write::Append(append, _) => append.class,
            // A fork is nothing before its last piece.
            Write::Fork(fork, _) if fork.more => Class::Process,
            Write::Fork(..) | Write::Delete(..) => Class::Power,
            Write::Base(..) | Write::Blob(..) => Class::Process,
        });
        let class = classes.max().unwrap_or(Class::Process);
        if let Err(failed) = self.book.begin(class) {
            return (writes.len(), Err(failed));
        }
        let (connection, known) = match self.book.parts() {
            Ok(parts) => parts,
            Err(failed) => return (writes.len(), Err(failed)),
        };
        let start = Instant::now();
        let mut bytes = 0;
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            let outcome = match write {
                Write::Append(append, _) => {
                    bytes += append.bytes();
                    let outcome = append.run(connection, &self.files, known);
                    outcome.map(|outcome| outcome.map(Done::Stored))
                }
                Write::Base(base, _) => {
                    bytes += base.bytes();
                    base.run(connection).map(|()| Ok(Done::Kept))
                }
                Write::Blob(blob, _) => {
                    let outcome = blob.run(connection, &self.files);
                    outcome.map(|outcome| outcome.map(|()| Done::Kept))
                }
                Write::Fork(fork, _) => {
                    bytes += fork.bytes();
                    fork.run(connection).map(|it| Ok(Done::Forked(it)))
                }
                Write::Delete(thread, head, _) => {
                    known.forget();
                    let files = &self.files;
                    let marked = crate::local::delete::mark(connection, files, *thread, *head);
                    marked.map(|row| Ok(Done::Going(row)))
                }
            };
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    let error = error::write(&error);
                    let by_one = true;
                    self.book.roll_back();
                    return (outcomes.len() + 1, Err(Failed { error, by_one }));
                }
            }
            if bytes >= BYTES_MAX || start.elapsed() >= TIME_MAX {
                break;
            }
        }
        let taken = outcomes.len();
        (taken, self.book.commit(bytes).map(|()| outcomes))
    }

    fn answer(&mut self, write: Write, outcome: Result<Done, AppendError>) {
        // Whoever no longer waits for the answer does not need it.
        match (write, outcome) {
            (Write::Append(_, answer), Ok(Done::Stored(appended))) => {
                if appended.leftovers {
                    self.chores.leftovers();
                }
                self.ring(appended.words);
                let _ = answer.send(Ok(appended.head));
            }
            (Write::Append(_, answer), Err(error)) => {
                let _ = answer.send(Err(error));
            }
            (Write::Fork(_, answer), Ok(Done::Forked(outcome))) => {
                let _ = answer.send(Ok(outcome));
            }
            (Write::Fork(_, answer), Err(error)) => {
                let _ = answer.send(Err(error));
            }
            (Write::Delete(_, _, answer), Ok(Done::Going(Some(number)))) => {
                self.chores.delete(number, answer);
            }
            (
                Write::Base(_, answer) | Write::Blob(_, answer) | Write::Delete(_, _, answer),
                outcome,
            ) => {
                let _ = answer.send(outcome.map(|_| ()));
            }
            (Write::Append(_, answer), Ok(_)) => {
                let _ = answer.send(Err(AppendError::Unknown("answered amiss".to_owned())));
            }
            (Write::Fork(_, answer), Ok(_)) => {
                let _ = answer.send(Err(AppendError::Unknown("answered amiss".to_owned())));
            }
        }
    }

    /// One piece of the work that nobody waits for, in a transaction of its own.
    fn chore(&mut self) {
        let Some(mut chore) = self.chores.next() else {
            return;
        };
        let done = self.book.begin(Class::Process).and_then(|()| {
            let (connection, _) = self.book.parts()?;
            match chore.piece(connection, &self.files) {
                Ok(over) => self.book.commit(0).map(|()| over),
                Err(error) => {
                    self.book.roll_back();
                    Err(error::write(&error).into())
                }
            }
        });
        match done {
            Ok(false) => self.chores.again(chore),
            Ok(true) => {
                if chore.leaves_traces() {
                    // Pages that held what is gone are still in the log.
                    self.book.clear();
                }
                for number in chore.cleared() {
                    self.bell.ring(number);
                }
                chore.finish(Ok(()));
            }
            Err(failed) => chore.finish(Err(failed.error)),
        }
    }

    fn ring(&self, number: Option<i64>) {
        if let Some(number) = number {
            self.bell.ring(number);
        }
    }
}
