//! The queue of frames to a peer, bounded in bytes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Mutex as AsyncMutex, Notify};

/// Maximum length of frames that share a chunk. Short frames are many, and a block for each,
/// allocated on one thread and freed on another, costs more than a copy.
const SHORT_BYTES_MAX: usize = 2 << 10;

/// Size of a chunk. A peer that reads nothing holds at most two partly filled chunks, and an idle
/// peer holds one.
const CHUNK_BYTES: usize = 8 << 10;

/// Queue of frames to one peer. Cheap to clone; frames leave in the order they were sent.
///
/// Sending never waits. The reader of the peer waits for [`Outgoing::wait_ready`] before it reads
/// more. So a peer that does not read is not read either, and the queue stays near the limit.
/// Producers of large frames call [`Outgoing::reserve`] first.
#[derive(Clone, Debug)]
pub struct Outgoing {
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    bytes_max: usize,
    /// Notified when there is a frame to write.
    filled: Notify,
    /// Notified when bytes were written or a permit was dropped, so that there may be capacity.
    drained: Notify,
    /// Notified when the peer is gone. Waiters for that alone are not woken by every write.
    ended: Notify,
    /// Held by the next waiter for an [`OutgoingPermit`], so that a large one is not overtaken
    /// indefinitely by small ones.
    reserve_lock: AsyncMutex<()>,
    /// Held by the next waiter of [`Outgoing::reserve_when_low`].
    low_lock: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Bytes>,
    /// Destination of the next short frame. It is reused when all its frames are written.
    chunk: BytesMut,
    /// Bytes queued and bytes taken but not yet written.
    bytes: usize,
    in_flight: usize,
    /// Total of bytes written so far.
    written: u64,
    /// Bytes reserved for frames that are still being produced.
    reserved: usize,
    close: Option<Close>,
    gone: bool,
}

impl State {
    /// Counts the taken bytes as written.
    fn mark_written(&mut self) {
        let written = std::mem::take(&mut self.in_flight);
        self.bytes -= written;
        self.written += written as u64;
    }

    /// Copies a short frame into the chunk; a longer one keeps its own memory.
    fn place_frame(&mut self, frame: Bytes) -> Bytes {
        if frame.len() > SHORT_BYTES_MAX {
            return frame;
        }
        if self.chunk.capacity() < frame.len() && !self.chunk.try_reclaim(CHUNK_BYTES) {
            self.chunk = BytesMut::with_capacity(CHUNK_BYTES);
        }
        self.chunk.extend_from_slice(&frame);
        self.chunk.split().freeze()
    }
}

/// Reason why a connection ends, sent to the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// A websocket close code.
    pub code: u16,
    /// Reason in one sentence.
    pub reason: Cow<'static, str>,
}

impl Close {
    /// The connection ends because its work is done.
    pub const NORMAL: Self = Self {
        code: 1000,
        reason: Cow::Borrowed(""),
    };
    /// The server shuts down.
    pub const GOING_AWAY: Self = Self {
        code: 1001,
        reason: Cow::Borrowed("server is shutting down"),
    };
    /// The peer violated the websocket protocol.
    pub const PROTOCOL: Self = Self {
        code: 1002,
        reason: Cow::Borrowed("websocket protocol error"),
    };
    /// A text message was not UTF-8.
    pub const NOT_TEXT: Self = Self {
        code: 1007,
        reason: Cow::Borrowed("text message is not UTF-8"),
    };
    /// The peer read nothing for too long.
    pub const NOT_READ: Self = Self {
        code: 1008,
        reason: Cow::Borrowed("nothing was read for too long; reconnect and resume"),
    };
    /// A message was over the limit.
    pub const TOO_LONG: Self = Self {
        code: 1009,
        reason: Cow::Borrowed("message is over the size cap"),
    };
}

/// Capacity for a frame that is still being produced. Send the frame, then drop the permit.
#[derive(Debug)]
pub struct OutgoingPermit {
    outgoing: Outgoing,
    bytes: usize,
}

impl Drop for OutgoingPermit {
    fn drop(&mut self) {
        self.outgoing.state().reserved -= self.bytes;
        self.outgoing.queue.drained.notify_waiters();
    }
}

/// Next step of a writer.
#[derive(Debug)]
pub enum WriterStep {
    /// Write these frames, then call again.
    Frames,
    /// The queue is closed; send the close frame.
    Closed(Close),
}

impl Outgoing {
    /// A queue that holds about `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        let state = Mutex::new(State::default());
        let queue = Queue {
            state,
            bytes_max,
            filled: Notify::new(),
            drained: Notify::new(),
            ended: Notify::new(),
            reserve_lock: AsyncMutex::new(()),
            low_lock: AsyncMutex::new(()),
        };
        Self {
            queue: Arc::new(queue),
        }
    }

    /// Queues a frame. Does nothing after the connection has closed.
    pub fn send(&self, frame: Bytes) {
        let mut state = self.state();
        if state.gone || state.close.is_some() || frame.is_empty() {
            return;
        }
        state.bytes += frame.len();
        let frame = state.place_frame(frame);
        state.frames.push_back(frame);
        if state.frames.len() == 1 {
            drop(state);
            self.queue.filled.notify_one();
        }
    }

    /// Waits until the queue is below its limit (backpressure).
    pub async fn wait_ready(&self) {
        self.wait_below(self.queue.bytes_max).await;
    }

    /// Waits until fewer than this many bytes are queued or being written. Producers of bulk data
    /// wait here, so that responses do not queue behind it.
    pub async fn wait_below(&self, bytes: usize) {
        loop {
            let drained = self.queue.drained.notified();
            if self.is_below(bytes) {
                return;
            }
            drained.await;
        }
    }

    fn is_below(&self, bytes: usize) -> bool {
        let state = self.state();
        state.gone || state.bytes < bytes
    }

    /// Waits, in the order of the calls, for capacity for a frame of this many bytes. It is granted
    /// when the frame fits under the limit, or when all that was sent or reserved before is
    /// written. So a frame above the limit is sent eventually, and the queue then holds at most
    /// this frame and what was sent while it waited. Returns at once if the peer is gone.
    pub async fn reserve(&self, bytes: usize) -> OutgoingPermit {
        let _guard = self.queue.reserve_lock.lock().await;
        let mut barrier = None;
        loop {
            let drained = self.queue.drained.notified();
            if let Some(permit) = self.try_reserve(bytes, &mut barrier) {
                return permit;
            }
            drained.await;
        }
    }

    /// Like [`Outgoing::reserve`], but first waits until fewer than `low` bytes are queued.
    pub async fn reserve_when_low(&self, bytes: usize, low: usize) -> OutgoingPermit {
        let _guard = self.queue.low_lock.lock().await;
        self.wait_below(low).await;
        self.reserve(bytes).await
    }

    /// Tries to reserve capacity. The barrier is the total of bytes that must be written first. It
    /// is set when nothing is reserved any more.
    fn try_reserve(&self, bytes: usize, barrier: &mut Option<u64>) -> Option<OutgoingPermit> {
        let mut state = self.state();
        let occupied = state.bytes.saturating_add(state.reserved);
        let fits = occupied.saturating_add(bytes) <= self.queue.bytes_max;
        let is_next = state.reserved == 0 && {
            let sent = state.written + state.bytes as u64;
            state.written >= *barrier.get_or_insert(sent)
        };
        if !fits && !is_next && !state.gone {
            return None;
        }
        state.reserved = state.reserved.saturating_add(bytes);
        Some(OutgoingPermit {
            outgoing: self.clone(),
            bytes,
        })
    }

    /// Closes the connection once everything queued is written. The first reason is kept.
    pub fn close(&self, close: Close) {
        let mut state = self.state();
        state.close.get_or_insert(close);
        drop(state);
        self.queue.filled.notify_one();
    }

    /// Closes the connection once the frames in flight are written. Queued frames are dropped,
    /// because a slow peer would need very long to reach the reason. The first reason is kept.
    pub fn abort(&self, close: Close) {
        let mut state = self.state();
        if state.gone || state.close.is_some() {
            return;
        }
        state.frames = VecDeque::new();
        state.bytes = state.in_flight;
        state.close = Some(close);
        drop(state);
        self.queue.drained.notify_waiters();
        self.queue.filled.notify_one();
    }

    /// Whether the connection is closed or closing.
    pub fn is_closed(&self) -> bool {
        let state = self.state();
        state.gone || state.close.is_some()
    }

    /// Bytes that are queued or being written.
    pub fn queued_bytes(&self) -> usize {
        self.state().bytes
    }

    /// Total of bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.state().written
    }

    /// Whether the peer is gone: no frame will reach it.
    pub fn is_gone(&self) -> bool {
        self.state().gone
    }

    /// Waits for frames and moves them all into `batch`. Frames taken before count as written.
    pub async fn take(&self, batch: &mut Vec<Bytes>) -> WriterStep {
        batch.clear();
        loop {
            if let Some(step) = self.take_now(batch) {
                return step;
            }
            self.filled().await;
        }
    }

    /// Resolves when there may be frames to take.
    ///
    /// A writer on another thread would wake for the first of many frames and take that one alone.
    /// A waiter on the senders' runtime wakes when they pause, and can take all of them.
    pub(crate) async fn filled(&self) {
        self.queue.filled.notified().await;
    }

    /// Moves all frames into `batch` if their total, with a line end each, is at most `bytes_max`.
    /// Returns whether it did.
    pub(crate) fn take_short(&self, bytes_max: usize, batch: &mut Vec<Bytes>) -> bool {
        let mut state = self.state();
        let is_short = state.in_flight == 0 && state.bytes + state.frames.len() <= bytes_max;
        // A reader of a closed queue's frames must also see its end.
        if !is_short || state.frames.is_empty() || state.close.is_some() {
            return false;
        }
        state.in_flight = state.bytes;
        batch.extend(state.frames.drain(..));
        true
    }

    /// Counts the taken frames as written.
    pub(crate) fn mark_written(&self) {
        self.state().mark_written();
        self.queue.drained.notify_waiters();
    }

    /// Takes the queued frames without waiting. Frames taken before count as written.
    pub(crate) fn take_now(&self, batch: &mut Vec<Bytes>) -> Option<WriterStep> {
        let mut state = self.state();
        state.mark_written();
        let step = if state.frames.is_empty() {
            state.close.clone().map(WriterStep::Closed)
        } else {
            state.in_flight = state.bytes;
            batch.extend(state.frames.drain(..));
            Some(WriterStep::Frames)
        };
        drop(state);
        self.queue.drained.notify_waiters();
        step
    }

    /// Marks the peer as gone and drops the queued frames. Called by the writer when it ends.
    pub fn mark_gone(&self) {
        let mut state = self.state();
        state.gone = true;
        state.frames = VecDeque::new();
        state.chunk = BytesMut::new();
        state.bytes = 0;
        state.in_flight = 0;
        state.close.get_or_insert(Close::NORMAL);
        drop(state);
        self.queue.drained.notify_waiters();
        self.queue.ended.notify_waiters();
        self.queue.filled.notify_one();
    }

    /// Resolves when the peer is gone.
    pub async fn when_gone(&self) {
        loop {
            let ended = self.queue.ended.notified();
            if self.is_gone() {
                return;
            }
            ended.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock; if it did, the queue is still valid.
        self.queue
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
