//! Frames on their way to a peer, bounded in bytes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Mutex as Turn, Notify};

/// Frames up to this length are put on a sheet together: they are many, and a block of memory for each
/// of them, made on one thread and freed on another, costs more than to copy it.
const SHORT_BYTES_MAX: usize = 2 << 10;

/// How much goes on one sheet. A peer that takes nothing keeps at most two of them that are not full, and
/// one that has nothing to take keeps one.
const CHUNK_BYTES: usize = 8 << 10;

/// The way out to one peer. Cheap to clone; frames leave in the order they were sent.
///
/// Sending never waits. Whoever reads the peer waits for [`Outgoing::room`] before taking more from
/// it, so a peer that does not read is not read either, and what is queued stays near the bound.
/// Whoever is about to make something large waits for [`Outgoing::hold`] before making it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    bytes_max: usize,
    /// Woken when there is something to write.
    filled: Notify,
    /// Woken when something was written or given back, so that there may be room now.
    drained: Notify,
    /// Woken when the peer is gone. Whoever waits for that alone is not woken by every write.
    ended: Notify,
    /// Held by whoever is next to get a [`Hold`], so that small ones do not overtake a large one for ever.
    reserve_lock: Turn<()>,
    /// The same for those who can wait until little is queued.
    low_lock: Turn<()>,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Bytes>,
    /// Where the next short frame goes. It is used again when all frames on it are written.
    chunk: BytesMut,
    /// Bytes queued and bytes taken but not yet written.
    bytes: usize,
    taken: usize,
    /// Bytes that were ever written.
    written: u64,
    /// Bytes that are promised to frames still being made.
    held: usize,
    close: Option<Close>,
    gone: bool,
}

impl State {
    /// What was taken counts as written.
    fn wrote(&mut self) {
        let written = std::mem::take(&mut self.taken);
        self.bytes -= written;
        self.written += written as u64;
    }

    /// Gives a frame the memory in which it waits.
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

/// Why a connection ends, as the peer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// A websocket close code.
    pub code: u16,
    /// Why, in a sentence.
    pub reason: Cow<'static, str>,
}

impl Close {
    /// Nothing is wrong.
    pub const NORMAL: Self = Self {
        code: 1000,
        reason: Cow::Borrowed(""),
    };
    /// The server is leaving.
    pub const GOING_AWAY: Self = Self {
        code: 1001,
        reason: Cow::Borrowed("server is shutting down"),
    };
    /// The peer broke the websocket standard.
    pub const PROTOCOL: Self = Self {
        code: 1002,
        reason: Cow::Borrowed("websocket protocol error"),
    };
    /// A text message was not UTF-8.
    pub const NOT_TEXT: Self = Self {
        code: 1007,
        reason: Cow::Borrowed("text message is not UTF-8"),
    };
    /// The peer took nothing of what was written to it for too long.
    pub const NOT_READ: Self = Self {
        code: 1008,
        reason: Cow::Borrowed("nothing was read for too long; come back and resume"),
    };
    /// A message was over the cap.
    pub const TOO_LONG: Self = Self {
        code: 1009,
        reason: Cow::Borrowed("message is over the size cap"),
    };
}

/// Room for a frame that is still being made. Send the frame, then drop this.
#[derive(Debug)]
pub struct OutgoingPermit {
    outgoing: Outgoing,
    bytes: usize,
}

impl Drop for OutgoingPermit {
    fn drop(&mut self) {
        self.outgoing.state().held -= self.bytes;
        self.outgoing.queue.drained.notify_waiters();
    }
}

/// What a writer gets to do next.
#[derive(Debug)]
pub enum WriterStep {
    /// Write these, then ask again.
    Frames,
    /// Nothing more will come; say goodbye.
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
            reserve_lock: Turn::new(()),
            low_lock: Turn::new(()),
        };
        Self {
            queue: Arc::new(queue),
        }
    }

    /// Queues a frame. After the connection has closed, nothing happens.
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

    /// Waits until the peer has read enough to be sent more.
    pub async fn wait_ready(&self) {
        self.wait_below(self.queue.bytes_max).await;
    }

    /// Waits until fewer bytes than these are queued or being written. Who has much to tell and can wait
    /// does so here, so that answers do not stand behind all of it.
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

    /// Waits, in the order of asking, until a frame of this many bytes may be made: until it fits under
    /// the bound, or all that was sent or promised before its turn came is written. So one large frame
    /// always passes, beside no more than what was sent while it waited. Once the peer is gone nobody
    /// waits.
    pub async fn reserve(&self, bytes: usize) -> OutgoingPermit {
        let _turn = self.queue.reserve_lock.lock().await;
        let mut behind = None;
        loop {
            let drained = self.queue.drained.notified();
            if let Some(hold) = self.try_reserve(bytes, &mut behind) {
                return hold;
            }
            drained.await;
        }
    }

    /// The same for one who can wait until the peer has read nearly all it was sent: until less than `low` is
    /// queued.
    pub async fn reserve_when_low(&self, bytes: usize, low: usize) -> OutgoingPermit {
        let _turn = self.queue.low_lock.lock().await;
        self.wait_below(low).await;
        self.reserve(bytes).await
    }

    /// `behind` is how many bytes are to be written first, counted from the peer's first one; it is
    /// known when nothing is promised to anyone any more.
    fn try_reserve(&self, bytes: usize, behind: &mut Option<u64>) -> Option<OutgoingPermit> {
        let mut state = self.state();
        let before = state.bytes.saturating_add(state.held);
        let fits = before.saturating_add(bytes) <= self.queue.bytes_max;
        let is_next = state.held == 0 && {
            let sent = state.written + state.bytes as u64;
            state.written >= *behind.get_or_insert(sent)
        };
        if !fits && !is_next && !state.gone {
            return None;
        }
        state.held = state.held.saturating_add(bytes);
        Some(OutgoingPermit {
            outgoing: self.clone(),
            bytes,
        })
    }

    /// Ends the connection once everything queued is written. The first reason stands.
    pub fn close(&self, close: Close) {
        let mut state = self.state();
        state.close.get_or_insert(close);
        drop(state);
        self.queue.filled.notify_one();
    }

    /// Ends the connection once what is being written is written. What is queued is forgotten: a peer that is too
    /// slow would need very long to come to the reason. The first reason stands.
    pub fn abort(&self, close: Close) {
        let mut state = self.state();
        if state.gone || state.close.is_some() {
            return;
        }
        state.frames = VecDeque::new();
        state.bytes = state.taken;
        state.close = Some(close);
        drop(state);
        self.queue.drained.notify_waiters();
        self.queue.filled.notify_one();
    }

    /// Whether the connection has ended or is about to.
    pub fn is_closed(&self) -> bool {
        let state = self.state();
        state.gone || state.close.is_some()
    }

    /// Bytes that are queued or being written.
    pub fn queued_bytes(&self) -> usize {
        self.state().bytes
    }

    /// Bytes that were ever written.
    pub fn written_bytes(&self) -> u64 {
        self.state().written
    }

    /// Whether the peer is gone: nothing more will reach it.
    pub fn is_gone(&self) -> bool {
        self.state().gone
    }

    /// Waits for frames and moves them all into `batch`. What was taken before counts as written.
    pub async fn take(&self, batch: &mut Vec<Bytes>) -> WriterStep {
        batch.clear();
        loop {
            if let Some(written) = self.take_now(batch) {
                return written;
            }
            self.filled().await;
        }
    }

    /// Resolves when there may be something to take.
    ///
    /// A writer on another thread would wake for the first frame of many and take that one alone. Who waits
    /// for this beside those who send wakes when they pause, and all of them can be taken.
    pub(crate) async fn filled(&self) {
        self.queue.filled.notified().await;
    }

    /// Moves all frames into `batch` if they are no longer than this together, each with the end of its line;
    /// says whether it did.
    pub(crate) fn take_short(&self, bytes_max: usize, batch: &mut Vec<Bytes>) -> bool {
        let mut state = self.state();
        let is_short = state.taken == 0 && state.bytes + state.frames.len() <= bytes_max;
        // Who sees the frames of a queue that is closed must see its end too.
        if !is_short || state.frames.is_empty() || state.close.is_some() {
            return false;
        }
        state.taken = state.bytes;
        batch.extend(state.frames.drain(..));
        true
    }

    /// What was taken is written.
    pub(crate) fn wrote(&self) {
        self.state().wrote();
        self.queue.drained.notify_waiters();
    }

    /// Takes what there is. What was taken before counts as written.
    pub(crate) fn take_now(&self, batch: &mut Vec<Bytes>) -> Option<WriterStep> {
        let mut state = self.state();
        state.wrote();
        let written = if state.frames.is_empty() {
            state.close.clone().map(WriterStep::Closed)
        } else {
            state.taken = state.bytes;
            batch.extend(state.frames.drain(..));
            Some(WriterStep::Frames)
        };
        drop(state);
        self.queue.drained.notify_waiters();
        written
    }

    /// The writer's last word: the peer is gone, whatever is still queued is forgotten.
    pub fn mark_gone(&self) {
        let mut state = self.state();
        state.gone = true;
        state.frames = VecDeque::new();
        state.chunk = BytesMut::new();
        state.bytes = 0;
        state.taken = 0;
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
        // Nothing panics while holding it; if something did, the queue itself is still whole.
        self.queue
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
