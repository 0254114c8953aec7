//! The one thread of this process that writes. What waits while it commits goes into the next commit.
//!
//! Text that streams in comes in pieces, each too small to be worth waking that thread. As long as it is idle,
//! whoever brings such a piece writes it on the spot.

mod state;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use raddle_core::ports::{AppendError, ForkError};
use raddle_core::{Seq, ThreadId};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use self::state::WriterState;
use super::append::Append;
use super::background_jobs::BackgroundJobs;
use super::files::BlobFiles;
use super::fork::{Fork, ForkProgress};
use super::quarantine::Quarantine;
use super::save::{NoteBlob, SaveBase};
use super::search::IndexSignal;
use super::write_conn::WriteConn;

/// How many writes may wait. Who comes then waits with what it brings.
const WAITING_MAX: usize = 4096;

/// Something to write, and whom to tell.
#[derive(Debug)]
pub(super) enum WriteRequest {
    /// Records.
    Append(Append, WriteReply<Seq>),
    /// A snapshot.
    Base(SaveBase, WriteReply<()>),
    /// A file beside the journal.
    Blob(NoteBlob, WriteReply<()>),
    /// A thread that begins with another's records.
    Fork(Fork, WriteReply<Result<ForkProgress, ForkError>>),
    /// A thread is to go, if it has this head or none is named.
    Delete(ThreadId, Option<Seq>, WriteReply<()>),
}

/// Where the outcome of a write goes.
pub(super) type WriteReply<T> = oneshot::Sender<Result<T, AppendError>>;

/// The way to the writer.
#[derive(Debug)]
pub(super) struct JournalWriter {
    sender: Option<mpsc::Sender<WriteRequest>>,
    thread: Option<JoinHandle<()>>,
    slot: Arc<WriterSlot>,
    /// Whether nobody knows what came of a commit.
    doubt: Arc<AtomicBool>,
    /// Why nothing can be written at all.
    closed_reason: Option<String>,
}

impl JournalWriter {
    pub(super) fn start(
        folder: PathBuf,
        connection: Connection,
        files: BlobFiles,
        bell: IndexSignal,
        quarantine: Quarantine,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let book = WriteConn::new(folder, connection, quarantine);
        let doubt = book.doubt();
        let desk = WriterState {
            conn: book,
            files,
            jobs: BackgroundJobs::default(),
            signal: bell,
            pause: None,
        };
        let place = Arc::new(WriterSlot {
            state: Mutex::new(Some(desk)),
            // Until it has looked for what was left undone.
            is_busy: AtomicBool::new(true),
        });
        let worker = Worker(place.clone());
        let builder = std::thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || worker.run(receiver))?;
        Ok(Self {
            sender: Some(sender),
            thread: Some(thread),
            slot: place,
            doubt,
            closed_reason: None,
        })
    }

    /// One that writes nothing, and says why.
    pub(super) fn none(why: &str) -> Self {
        Self {
            sender: None,
            thread: None,
            slot: Arc::default(),
            doubt: Arc::default(),
            closed_reason: Some(why.to_owned()),
        }
    }

    /// Whether anything can be written.
    pub(super) fn is_open(&self) -> Result<(), AppendError> {
        match &self.closed_reason {
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

    /// Appends on the spot what is small and need not reach the disk, if nobody else writes.
    pub(super) fn append_now(&self, append: &Append) -> Option<Result<Seq, AppendError>> {
        let sender = self.sender.as_ref()?;
        let is_awaited = sender.capacity() < sender.max_capacity();
        if !append.is_small() || is_awaited || self.slot.is_busy.load(Ordering::Acquire) {
            return None;
        }
        let mut desk = self.slot.state.try_lock().ok()?;
        desk.as_mut()?.append_now(append)
    }

    /// Waits until the thread has nothing to do.
    #[cfg(test)]
    pub(super) fn wait_idle(&self) {
        while self.slot.is_busy.load(Ordering::Acquire) {
            drop(self.slot.state());
            std::thread::yield_now();
        }
    }

    /// Hands over a write and waits for what came of it.
    pub(super) async fn write<T>(
        &self,
        make: impl FnOnce(WriteReply<T>) -> WriteRequest,
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

impl Drop for JournalWriter {
    fn drop(&mut self) {
        // What waits is still written; then the file is closed in good order.
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, its callers know already.
            let _ = thread.join();
        }
    }
}

/// Where writing is done: by the thread, or on the spot.
#[derive(Debug, Default)]
struct WriterSlot {
    /// Nothing once the thread has ended.
    state: Mutex<Option<WriterState>>,
    /// Whether the thread has something to do. It must not wait for who writes on the spot again and again.
    is_busy: AtomicBool,
}

impl WriterSlot {
    fn state(&self) -> MutexGuard<'_, Option<WriterState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's own hold on the place. When it ends, however that comes about, the file is closed.
struct Worker(Arc<WriterSlot>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.state().take();
    }
}

impl Worker {
    fn run(self, mut receiver: mpsc::Receiver<WriteRequest>) {
        let place = &*self.0;
        let mut group = Vec::new();
        let mut has_chores = match &mut *place.state() {
            Some(desk) => desk.wake(),
            None => return,
        };
        loop {
            if has_chores {
                while let Ok(write) = receiver.try_recv() {
                    group.push(write);
                }
            } else {
                place.is_busy.store(false, Ordering::Release);
                if receiver.blocking_recv_many(&mut group, WAITING_MAX) == 0 {
                    return;
                }
                place.is_busy.store(true, Ordering::Release);
            }
            // Whoever panicked over a write on the spot has left a transaction behind; it ends with the file.
            let Ok(mut desk) = place.state.lock() else {
                return;
            };
            match &mut *desk {
                Some(desk) => has_chores = desk.work(&mut group),
                None => return,
            }
            drop(desk);
            if receiver.is_closed() && receiver.is_empty() {
                // Nobody waits for the chores; whoever opens the file next takes them up.
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
