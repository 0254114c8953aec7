//! The queue of a thread's undelivered events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::ThreadEvent;

/// Maximum bytes of queued events; one more event may exceed it.
pub(crate) const BYTES_MAX: usize = 4 << 20;

/// Maximum number of queued events.
const COUNT_MAX: usize = 8192;

/// Filled by the client's task, drained by the [`ThreadFollower`](crate::ThreadFollower).
#[derive(Debug)]
pub(crate) struct EventQueue {
    state: Mutex<State>,
    filled: Notify,
    /// Wakes the client's task.
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(ThreadEvent, usize)>,
    bytes: usize,
    /// The task will push nothing more.
    ended: bool,
    /// The follower was dropped.
    closed: bool,
    /// The task waits for capacity.
    is_awaited: bool,
}

impl State {
    fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX || self.waiting.len() >= COUNT_MAX
    }

    fn is_low(&self) -> bool {
        self.bytes <= BYTES_MAX / 4 && self.waiting.len() <= COUNT_MAX / 4
    }
}

impl EventQueue {
    pub(crate) fn new(wake: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            filled: Notify::new(),
            wake,
        })
    }

    pub(crate) fn push(&self, event: ThreadEvent, bytes: usize) {
        let mut state = self.state();
        if state.closed || state.ended {
            return;
        }
        state.bytes += bytes;
        state.waiting.push_back((event, bytes));
        drop(state);
        self.filled.notify_one();
    }

    /// Marks the end: the queued events are the last.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.filled.notify_one();
    }

    /// Whether the queue is full. If so, the task is woken when it has drained.
    pub(crate) fn is_full(&self) -> bool {
        let mut state = self.state();
        let is_full = state.is_full();
        state.is_awaited |= is_full;
        is_full
    }

    /// Whether the queue is nearly empty. If not, the task is woken when it is.
    pub(crate) fn is_low(&self) -> bool {
        let mut state = self.state();
        let is_low = state.is_low();
        state.is_awaited |= !is_low;
        is_low
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Returns the next event, or `None` after the last.
    pub(crate) async fn pop(&self) -> Option<ThreadEvent> {
        loop {
            let filled = self.filled.notified();
            {
                let mut state = self.state();
                if let Some((event, bytes)) = state.waiting.pop_front() {
                    state.bytes -= bytes;
                    if state.is_awaited && state.is_low() {
                        state.is_awaited = false;
                        self.wake.notify_one();
                    }
                    return Some(event);
                }
                if state.ended {
                    return None;
                }
            }
            filled.await;
        }
    }

    /// Discards the queued events and accepts no more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting = VecDeque::new();
        state.bytes = 0;
        drop(state);
        self.wake.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
