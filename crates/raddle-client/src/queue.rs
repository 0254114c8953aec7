//! What happened in a thread and was not taken yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::ThreadEvent;

/// How many bytes of messages may wait; one message more may come on top.
pub(crate) const BYTES_MAX: usize = 4 << 20;

/// How many happenings may wait.
const COUNT_MAX: usize = 8192;

/// Filled by the client's task, emptied by whoever follows.
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
    /// Nothing more will come.
    ended: bool,
    /// Nobody takes anything any more.
    closed: bool,
    /// The task waits for room.
    wanted: bool,
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
    pub(crate) fn new(stirred: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            filled: Notify::new(),
            wake: stirred,
        })
    }

    pub(crate) fn push(&self, happening: ThreadEvent, bytes: usize) {
        let mut state = self.state();
        if state.closed || state.ended {
            return;
        }
        state.bytes += bytes;
        state.waiting.push_back((happening, bytes));
        drop(state);
        self.filled.notify_one();
    }

    /// Nothing more will come than what waits.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.filled.notify_one();
    }

    /// Whether there is no room. If so, the task is woken when there is.
    pub(crate) fn is_full(&self) -> bool {
        let mut state = self.state();
        let is_full = state.is_full();
        state.wanted |= is_full;
        is_full
    }

    /// Whether little waits. If not, the task is woken when it does.
    pub(crate) fn is_low(&self) -> bool {
        let mut state = self.state();
        let is_low = state.is_low();
        state.wanted |= !is_low;
        is_low
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// The next happening; nothing when no more will come.
    pub(crate) async fn pop(&self) -> Option<ThreadEvent> {
        loop {
            let filled = self.filled.notified();
            {
                let mut state = self.state();
                if let Some((happening, bytes)) = state.waiting.pop_front() {
                    state.bytes -= bytes;
                    if state.wanted && state.is_low() {
                        state.wanted = false;
                        self.wake.notify_one();
                    }
                    return Some(happening);
                }
                if state.ended {
                    return None;
                }
            }
            filled.await;
        }
    }

    /// Nobody takes anything any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting = VecDeque::new();
        state.bytes = 0;
        drop(state);
        self.wake.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
