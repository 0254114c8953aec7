//! Threads that read, each with its own connection and short transactions, so that no read blocks a
//! write.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use raddle_core::ports::ReadError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::readonly::{self, JournalStamp};
use super::{error, schema};

/// Maximum number of queued reads. Further callers wait for a free slot.
const WAITING_MAX: usize = 1024;

/// Number of reader threads.
const THREADS: usize = 2;

/// Handle of the reader threads.
#[derive(Debug)]
pub(super) struct ReaderPool {
    sender: Option<mpsc::Sender<ReadJob>>,
    threads: Vec<JoinHandle<()>>,
}

type ReadJob = Box<dyn FnOnce(&mut ReaderState) + Send>;

type Queue = Arc<Mutex<mpsc::Receiver<ReadJob>>>;

/// State of a reader thread.
struct ReaderState {
    folder: PathBuf,
    connection: Option<Connection>,
    /// Stamp of the file when the connection was opened. On a read-only disk, SQLite cannot detect
    /// writes of other processes.
    stamp: Option<JournalStamp>,
}

impl ReaderPool {
    pub(super) fn start(folder: &std::path::Path) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let queue: Queue = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::with_capacity(THREADS);
        for _ in 0..THREADS {
            let queue = Arc::clone(&queue);
            let mut state = ReaderState {
                folder: folder.to_owned(),
                connection: None,
                stamp: None,
            };
            let builder = std::thread::Builder::new().name("journal-reader".to_owned());
            threads.push(builder.spawn(move || {
                while let Some(work) = next(&queue) {
                    work(&mut state);
                }
            })?);
        }
        Ok(Self {
            sender: Some(sender),
            threads,
        })
    }

    /// Reads in one transaction.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        self.run(move |state| state.read(read)).await?
    }

    /// Runs blocking disk work.
    pub(super) async fn wait<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.run(move |_| work()).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut ReaderState) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let stopped = || ReadError::Unavailable("the readers have stopped".to_owned());
        let (answer, outcome) = oneshot::channel();
        let work: ReadJob = Box::new(move |state| {
            // The caller may have stopped waiting.
            let _ = answer.send(work(state));
        });
        let sender = self.sender.as_ref().ok_or_else(stopped)?;
        sender.send(work).await.map_err(|_| stopped())?;
        outcome.await.map_err(|_| stopped())
    }
}

fn next(queue: &Queue) -> Option<ReadJob> {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    queue.blocking_recv()
}

impl ReaderState {
    fn read<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if self
            .stamp
            .is_some_and(|stamp| stamp != JournalStamp::of(&self.folder))
        {
            self.connection = None;
        }
        let mut outcome = self.read_once(read);
        if self
            .stamp
            .is_some_and(|stamp| stamp != JournalStamp::of(&self.folder))
        {
            let what = "another process wrote to the journal during the read; try again";
            outcome = Err(ReadError::Unavailable(what.to_owned()));
        }
        if matches!(outcome, Err(ReadError::Unavailable(_))) {
            // The next read opens a new connection.
            self.connection = None;
        }
        outcome
    }

    fn read_once<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => {
                self.stamp =
                    readonly::readonly_reason(&self.folder).map(|_| JournalStamp::of(&self.folder));
                none.insert(schema::open_to_read(&self.folder).map_err(error::open)?)
            }
        };
        let transaction = connection.transaction().map_err(error::open)?;
        // A newer process may have migrated the file since the last read.
        schema::check_to_read(&transaction)?;
        read(&transaction)
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        self.sender = None;
        for thread in self.threads.drain(..) {
            // If it panicked, its caller knows already.
            let _ = thread.join();
        }
    }
}
