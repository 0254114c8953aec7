//! Frames on their way to a peer, bounded in bytes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// The way out to one peer. Cheap to clone; frames leave in the order they were sent.
///
/// Sending never waits. Whoever reads the peer waits for [`Outgoing::room`] before taking more from
/// it, so a peer that does not read is not read either, and what is queued stays near the bound.
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
    /// Woken when the queue is short enough again, or closed.
    drained: Notify,
}

#[derive(Debug, Default)]
struct State {
    frames: VecDeque<Bytes>,
    /// Bytes queued and bytes taken but not yet written.
    bytes: usize,
    taken: usize,
    close: Option<Close>,
    gone: bool,
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
    /// A message was over the cap.
    pub const TOO_LONG: Self = Self {
        code: 1009,
        reason: Cow::Borrowed("message is over the size cap"),
    };
}

/// What a writer gets to do next.
#[derive(Debug)]
pub enum Written {
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
        state.frames.push_back(frame);
        if state.frames.len() == 1 {
            drop(state);
            self.queue.filled.notify_one();
        }
    }

    /// Waits until the peer has read enough to be sent more.
    pub async fn room(&self) {
        loop {
            let drained = self.queue.drained.notified();
            if self.has_room() {
                return;
            }
            drained.await;
        }
    }

    fn has_room(&self) -> bool {
        let state = self.state();
        state.gone || state.bytes < self.queue.bytes_max
    }

    /// Ends the connection once everything queued is written. The first reason stands.
    pub fn close(&self, close: Close) {
        let mut state = self.state();
        state.close.get_or_insert(close);
        drop(state);
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

    /// Waits for frames and moves them all into `batch`. What was taken before counts as written.
    pub async fn take(&self, batch: &mut Vec<Bytes>) -> Written {
        batch.clear();
        loop {
            if let Some(written) = self.take_now(batch) {
                return written;
            }
            self.queue.filled.notified().await;
        }
    }

    fn take_now(&self, batch: &mut Vec<Bytes>) -> Option<Written> {
        let mut state = self.state();
        state.bytes -= std::mem::take(&mut state.taken);
        let written = if state.frames.is_empty() {
            state.close.clone().map(Written::Closed)
        } else {
            state.taken = state.bytes;
            batch.extend(state.frames.drain(..));
            Some(Written::Frames)
        };
        drop(state);
        self.queue.drained.notify_waiters();
        written
    }

    /// The writer's last word: the peer is gone, whatever is still queued is forgotten.
    pub fn gone(&self) {
        let mut state = self.state();
        state.gone = true;
        state.frames = VecDeque::new();
        state.bytes = 0;
        state.taken = 0;
        state.close.get_or_insert(Close::NORMAL);
        drop(state);
        self.queue.drained.notify_waiters();
        self.queue.filled.notify_one();
    }

    /// Resolves when the peer is gone.
    pub async fn when_gone(&self) {
        loop {
            let drained = self.queue.drained.notified();
            if self.state().gone {
                return;
            }
            drained.await;
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
