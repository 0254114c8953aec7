//! The one thread of this process that writes. What waits while it commits goes into the next commit.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use raddle_core::ports::AppendError;
use raddle_core::{Class, Seq, ThreadId};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::append::{Append, Appended};
use super::chores::Chores;
use super::files::Files;
use super::known::Known;
use super::save::{NoteBlob, SaveBase};
use super::search::Bell;
use super::{error, schema};

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
}

impl Writer {
    pub(super) fn start(
        folder: PathBuf,
        connection: Connection,
        files: Files,
        bell: Bell,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let desk = Desk {
            folder,
            files,
            connection: Some(connection),
            synced: Class::Process,
            known: Known::default(),
            receiver,
            chores: Chores::default(),
            bell,
        };
        let builder = std::thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || desk.run())?;
        Ok(Self {
            sender: Some(sender),
            thread: Some(thread),
        })
    }

    /// Hands over a write and waits for what came of it.
    pub(super) async fn write<T>(
        &self,
        make: impl FnOnce(Answer<T>) -> Write,
    ) -> Result<T, AppendError> {
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
    folder: PathBuf,
    files: Files,
    /// Nothing after a failure that left the file in doubt, until it was opened again.
    connection: Option<Connection>,
    /// What a commit survives as the connection is set now.
    synced: Class,
    known: Known,
    receiver: mpsc::Receiver<Write>,
    chores: Chores,
    /// Who keeps the words that can be searched for.
    bell: Bell,
}

/// What came of a write that was committed.
enum Done {
    Stored(Appended),
    Kept,
    Going(Option<i64>),
}

/// Why nothing of a transaction happened, or nobody knows.
struct Failed {
    error: AppendError,
    /// Whether it was one of the writes that failed, so that the others may succeed without it.
    by_one: bool,
}

impl From<AppendError> for Failed {
    fn from(error: AppendError) -> Self {
        Self {
            error,
            by_one: false,
        }
    }
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
        }
    }

    /// One transaction over as many writes as fit; says how many those were and what came of them.
    fn transact(
        &mut self,
        writes: &[Write],
    ) -> (usize, Result<Vec<Result<Done, AppendError>>, Failed>) {
        let classes = writes.iter().map(|write| match write {
            Write::Append(append, _) => append.class,
            Write::Delete(..) => Class::Power,
            Write::Base(..) | Write::Blob(..) => Class::Process,
        });
        let class = classes.max().unwrap_or(Class::Process);
        let began = self.begin(class);
        let connection = match (began, &self.connection) {
            (Ok(()), Some(connection)) => connection,
            (Err(failed), _) => return (writes.len(), Err(failed)),
            (Ok(()), None) => return (writes.len(), Err(nothing())),
        };
        let start = Instant::now();
        let mut bytes = 0;
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            let outcome = match write {
                Write::Append(append, _) => {
                    bytes += append.bytes();
                    let outcome = append.run(connection, &self.files, &mut self.known);
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
                Write::Delete(thread, _) => {
                    self.known.forget();
                    super::delete::mark(connection, *thread).map(|row| Ok(Done::Going(row)))
                }
            };
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    let error = error::write(&error);
                    let by_one = true;
                    self.roll_back();
                    return (outcomes.len() + 1, Err(Failed { error, by_one }));
                }
            }
            if bytes >= BYTES_MAX || start.elapsed() >= TIME_MAX {
                break;
            }
        }
        let taken = outcomes.len();
        (taken, self.commit().map(|()| outcomes))
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
            (Write::Delete(_, answer), Ok(Done::Going(Some(number)))) => {
                self.chores.delete(number, answer);
            }
            (
                Write::Base(_, answer) | Write::Blob(_, answer) | Write::Delete(_, answer),
                outcome,
            ) => {
                let _ = answer.send(outcome.map(|_| ()));
            }
            (Write::Append(_, answer), Ok(Done::Kept | Done::Going(_))) => {
                let _ = answer.send(Err(AppendError::Unknown("answered amiss".to_owned())));
            }
        }
    }

    /// One piece of the work that nobody waits for, in a transaction of its own.
    fn chore(&mut self) {
        let Some(mut chore) = self.chores.next() else {
            return;
        };
        let done = self.begin(Class::Process).and_then(|()| {
            let Some(connection) = &self.connection else {
                return Err(nothing());
            };
            match chore.piece(connection, &self.files) {
                Ok(over) => self.commit().map(|()| over),
                Err(error) => {
                    self.roll_back();
                    Err(error::write(&error).into())
                }
            }
        });
        match done {
            Ok(false) => self.chores.again(chore),
            Ok(true) => {
                if chore.leaves_traces()
                    && let Some(connection) = &self.connection
                {
                    // Pages that held what is gone are still in the log. If a reader is in the way,
                    // the next of these, or closing the file, clears them.
                    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                }
                self.ring(chore.deleted());
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

    fn begin(&mut self, class: Class) -> Result<(), Failed> {
        self.reopen()?;
        let Some(connection) = &self.connection else {
            return Err(nothing());
        };
        if self.synced != class {
            let level = match class {
                Class::Power => "full",
                Class::Process => "normal",
            };
            let set = connection.pragma_update(None, "synchronous", level);
            set.map_err(|error| Failed::from(error::write(&error)))?;
            // Noted at once: should the next step fail, the one after it must know how things stand.
            self.synced = class;
        }
        let begun = connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut it| it.execute([]));
        match begun {
            Ok(_) => {
                let refreshed = self.known.refresh(connection);
                refreshed.map_err(|error| {
                    self.roll_back();
                    error::write(&error).into()
                })
            }
            Err(error) => Err(error::write(&error).into()),
        }
    }

    fn commit(&mut self) -> Result<(), Failed> {
        let Some(connection) = &self.connection else {
            return Err(nothing());
        };
        let committed = connection
            .prepare_cached("COMMIT")
            .and_then(|mut it| it.execute([]));
        let Err(error) = committed else {
            return Ok(());
        };
        self.known.forget();
        let error = error::commit(&error);
        let by_one = matches!(error, AppendError::Full(_));
        if matches!(error, AppendError::Unknown(_)) {
            // After a sync that failed, the system may have dropped what was to be synced, and the
            // next sync would succeed over the hole. The connection is not trusted with another.
            self.connection = None;
        } else {
            self.roll_back();
        }
        Err(Failed { error, by_one })
    }

    fn roll_back(&mut self) {
        self.known.forget();
        let Some(connection) = &self.connection else {
            return;
        };
        // SQLite itself rolls back after some failures.
        if !connection.is_autocommit() && connection.execute("ROLLBACK", []).is_err() {
            self.connection = None;
        }
    }

    /// Opens the file again after a failure. Everything that is only in the log is first written to
    /// the file and synced there, because the log may have holes that no sync would show.
    fn reopen(&mut self) -> Result<(), Failed> {
        if self.connection.is_some() {
            return Ok(());
        }
        let opened = schema::open_to_write(&self.folder).and_then(|connection| {
            let busy: i64 =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            Ok((connection, busy != 0))
        });
        match opened {
            Ok((connection, false)) => {
                self.connection = Some(connection);
                self.synced = Class::Process;
                Ok(())
            }
            Ok((_, true)) => {
                let what = "a reader is in the way of opening the journal again";
                Err(AppendError::Unavailable(what.to_owned()).into())
            }
            Err(error) => Err(error::write(&error).into()),
        }
    }
}

fn nothing() -> Failed {
    AppendError::Unavailable("the journal is closed".to_owned()).into()
}
