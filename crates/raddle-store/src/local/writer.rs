//! The one thread of this process that writes. What waits while it commits goes into the next commit.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use raddle_core::ports::{AppendError, ForkError};
use raddle_core::{Class, Seq, ThreadId};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::append::{Append, Appended};
use super::book::{Book, Failed, nothing};
use super::chores::Chores;
use super::error;
use super::files::Files;
use super::fork::{Fork, Forked};
use super::quarantine::Quarantine;
use super::save::{NoteBlob, SaveBase};
use super::search::Bell;

/// How many writes may wait. Who comes then waits with what it brings.
const WAITING_MAX: usize = 4096;

/// How much goes into one transaction, and how long it may take to get there.
const BYTES_MAX: usize = 1 << 20;
const TIME_MAX: Duration = Duration::from_millis(5);

/// Something to write, and whom to tell.
#[derive(Debug)]
pub(super) enum Write {
    /// Records.
    Append(Append, Answer<Seq>),
    /// A snapshot.
    Base(SaveBase, Answer<()>),
    /// A file beside the journal.
    Blob(NoteBlob, Answer<()>),
    /// A thread that begins with another's records.
    Fork(Fork, Answer<Result<Forked, ForkError>>),
    /// A thread is to go.
    Delete(ThreadId, Answer<()>),
}

/// Where the outcome of a write goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, AppendError>>;

/// The way to the writer.
#[derive(Debug)]
pub(super) struct Writer {
    sender: Option<mpsc::Sender<Write>>,
    thread: Option<JoinHandle<()>>,
    /// Whether nobody knows what came of a commit.
    doubt: Arc<AtomicBool>,
    /// Why nothing can be written at all.
    shut: Option<String>,
}

impl Writer {
    pub(super) fn start(
        folder: PathBuf,
        connection: Connection,
        files: Files,
        bell: Bell,
        quarantine: Quarantine,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let book = Book::new(folder, connection, quarantine);
        let doubt = book.doubt();
        let desk = Desk {
            book,
            files,
            receiver,
            chores: Chores::default(),
            bell,
        };
        let builder = std::thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || desk.run())?;
        Ok(Self {
            sender: Some(sender),
            thread: Some(thread),
            doubt,
            shut: None,
        })
    }

    /// One that writes nothing, and says why.
    pub(super) fn none(why: &str) -> Self {
        Self {
            sender: None,
            thread: None,
            doubt: Arc::default(),
            shut: Some(why.to_owned()),
        }
    }

    /// Whether anything can be written.
    pub(super) fn is_open(&self) -> Result<(), AppendError> {
        match &self.shut {
            Some(why) => Err(AppendError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Whether nobody knows what came of a commit, until the next write finds out.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt.load(Ordering::Acquire)
    }

    /// As after a commit that failed.
    #[cfg(test)]
    pub(super) fn doubt(&self) {
        self.doubt.store(true, Ordering::Release);
    }

    /// Hands over a write and waits for what came of it.
    pub(super) async fn write<T>(
        &self,
        make: impl FnOnce(Answer<T>) -> Write,
    ) -> Result<T, AppendError> {
        self.is_open()?;
        let gone = || AppendError::Unavailable("the writer has stopped".to_owned());
        let (answer, outcome) = oneshot::channel();
        let sender = self.sender.as_ref().ok_or_else(gone)?;
        sender.send(make(answer)).await.map_err(|_| gone())?;
        let lost = || AppendError::Unknown("the writer stopped over it".to_owned());
        outcome.await.map_err(|_| lost())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // What waits is still written; then the file is closed in good order.
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, its callers know already.
            let _ = thread.join();
        }
    }
}

/// What the writer has before it.
struct Desk {
    book: Book,
    files: Files,
    receiver: mpsc::Receiver<Write>,
    chores: Chores,
    /// Who keeps the words that can be searched for.
    bell: Bell,
}

/// What came of a write that was committed.
enum Done {
    Stored(Appended),
    Kept,
    Forked(Result<Forked, ForkError>),
    Going(Option<i64>),
}

impl Desk {
    fn run(mut self) {
        self.chores.wake();
        let mut group = Vec::new();
        loop {
            if self.chores.is_empty() {
                if self.receiver.blocking_recv_many(&mut group, WAITING_MAX) == 0 {
                    return;
                }
            } else {
                while let Ok(write) = self.receiver.try_recv() {
                    group.push(write);
                }
                self.chore();
            }
            self.work_off(&mut group);
            self.chores.tidy();
            if self.receiver.is_closed() && self.receiver.is_empty() {
                // Nobody waits for the chores; whoever opens the file next takes them up.
                return;
            }
        }
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
                Write::Delete(thread, _) => {
                    known.forget();
                    super::delete::mark(connection, *thread).map(|row| Ok(Done::Going(row)))
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
            (Write::Delete(_, answer), Ok(Done::Going(Some(number)))) => {
                self.chores.delete(number, answer);
            }
            (
                Write::Base(_, answer) | Write::Blob(_, answer) | Write::Delete(_, answer),
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
