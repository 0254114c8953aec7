//! The writer thread of this process. Requests that arrive during a commit go into the next commit.
//!
//! Streamed text arrives in pieces that are too small to be worth waking that thread. While it is
//! idle, the caller writes such a piece itself.

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

/// Maximum number of queued writes. Further callers wait for a free slot.
const WAITING_MAX: usize = 4096;

/// A write, and where to send its result.
#[derive(Debug)]
pub(super) enum WriteRequest {
    Append(Append, WriteReply<Seq>),
    Base(SaveBase, WriteReply<()>),
    /// Registers a blob file in the journal.
    Blob(NoteBlob, WriteReply<()>),
    Fork(Fork, WriteReply<Result<ForkProgress, ForkError>>),
    /// Deletes a thread, if its head matches or no head is given.
    Delete(ThreadId, Option<Seq>, WriteReply<()>),
}

/// Channel for the result of a write.
pub(super) type WriteReply<T> = oneshot::Sender<Result<T, AppendError>>;

/// Handle of the writer thread.
#[derive(Debug)]
pub(super) struct JournalWriter {
    sender: Option<mpsc::Sender<WriteRequest>>,
    thread: Option<JoinHandle<()>>,
    slot: Arc<WriterSlot>,
    /// Whether the outcome of a commit is unknown.
    doubt: Arc<AtomicBool>,
    /// Reason why the journal is read-only.
    closed_reason: Option<String>,
}

impl JournalWriter {
    pub(super) fn start(
        folder: PathBuf,
        connection: Connection,
        files: BlobFiles,
        signal: IndexSignal,
        quarantine: Quarantine,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let conn = WriteConn::new(folder, connection, quarantine);
        let doubt = conn.doubt();
        let state = WriterState {
            conn,
            files,
            jobs: BackgroundJobs::default(),
            signal,
            pause: None,
        };
        let slot = Arc::new(WriterSlot {
            state: Mutex::new(Some(state)),
            // Until it has looked for unfinished work.
            is_busy: AtomicBool::new(true),
        });
        let worker = Worker(slot.clone());
        let builder = std::thread::Builder::new().name("journal".to_owned());
        let thread = builder.spawn(move || worker.run(receiver))?;
        Ok(Self {
            sender: Some(sender),
            thread: Some(thread),
            slot,
            doubt,
            closed_reason: None,
        })
    }

    /// Creates a writer that rejects every write with a reason.
    pub(super) fn none(why: &str) -> Self {
        Self {
            sender: None,
            thread: None,
            slot: Arc::default(),
            doubt: Arc::default(),
            closed_reason: Some(why.to_owned()),
        }
    }

    /// Returns an error if the journal is read-only.
    pub(super) fn check_open(&self) -> Result<(), AppendError> {
        match &self.closed_reason {
            Some(why) => Err(AppendError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    /// Whether the outcome of a commit is unknown, until the next write settles it.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubt.load(Ordering::Acquire)
    }

    /// Simulates a commit with an unknown outcome.
    #[cfg(test)]
    pub(super) fn doubt(&self) {
        self.doubt.store(true, Ordering::Release);
    }

    /// Runs a small append of class *process* on the caller's thread, if the writer is idle.
    pub(super) fn append_now(&self, append: &Append) -> Option<Result<Seq, AppendError>> {
        let sender = self.sender.as_ref()?;
        let is_awaited = sender.capacity() < sender.max_capacity();
        if !append.is_small() || is_awaited || self.slot.is_busy.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.slot.state.try_lock().ok()?;
        state.as_mut()?.append_now(append)
    }

    /// Waits until the writer thread is idle.
    #[cfg(test)]
    pub(super) fn wait_idle(&self) {
        while self.slot.is_busy.load(Ordering::Acquire) {
            drop(self.slot.state());
            std::thread::yield_now();
        }
    }

    /// Sends a write to the writer thread and waits for its result.
    pub(super) async fn write<T>(
        &self,
        make: impl FnOnce(WriteReply<T>) -> WriteRequest,
    ) -> Result<T, AppendError> {
        self.check_open()?;
        let stopped = || AppendError::Unavailable("the writer has stopped".to_owned());
        let (answer, outcome) = oneshot::channel();
        let sender = self.sender.as_ref().ok_or_else(stopped)?;
        sender.send(make(answer)).await.map_err(|_| stopped())?;
        let unknown = || AppendError::Unknown("the writer stopped during the write".to_owned());
        outcome.await.map_err(|_| unknown())?
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        // Queued writes are still written; then the file is closed cleanly.
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, its callers know already.
            let _ = thread.join();
        }
    }
}

/// State shared by the writer thread and callers that write directly.
#[derive(Debug, Default)]
struct WriterSlot {
    /// `None` once the thread has ended.
    state: Mutex<Option<WriterState>>,
    /// Whether the thread has work. Direct writes then stop, so that they cannot starve the thread.
    is_busy: AtomicBool,
}

impl WriterSlot {
    fn state(&self) -> MutexGuard<'_, Option<WriterState>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's handle of the slot. When the thread ends, even by a panic, the file is closed.
struct Worker(Arc<WriterSlot>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.state().take();
    }
}

impl Worker {
    fn run(self, mut receiver: mpsc::Receiver<WriteRequest>) {
        let slot = &*self.0;
        let mut group = Vec::new();
        let mut has_jobs = match &mut *slot.state() {
            Some(state) => state.wake(),
            None => return,
        };
        loop {
            if has_jobs {
                while let Ok(write) = receiver.try_recv() {
                    group.push(write);
                }
            } else {
                slot.is_busy.store(false, Ordering::Release);
                if receiver.blocking_recv_many(&mut group, WAITING_MAX) == 0 {
                    return;
                }
                slot.is_busy.store(true, Ordering::Release);
            }
            // A panic during a direct write leaves an open transaction behind; closing the file
            // ends it.
            let Ok(mut state) = slot.state.lock() else {
                return;
            };
            match &mut *state {
                Some(state) => has_jobs = state.work(&mut group),
                None => return,
            }
            drop(state);
            if receiver.is_closed() && receiver.is_empty() {
                // No caller waits for the background jobs; the next opening of the file resumes
                // them.
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
