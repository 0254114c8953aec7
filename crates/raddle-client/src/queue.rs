//! What happened in a thread and was not taken yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::Happening;

/// How many bytes of messages may wait; one message more may come on top.
pub(crate) const BYTES_MAX: usize = 4 << 20;

/// How many happenings may wait.
const COUNT_MAX: usize = 8192;

/// Filled by the client's task, emptied by whoever follows.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Notify,
    /// Wakes the client's task.
    stirred: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Happening, usize)>,
    bytes: usize,
    /// Nothing more will come.
    ended: bool,
    /// Nobody takes anything any more.
    left: bool,
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

impl Queue {
    pub(crate) fn new(stirred: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            filled: Notify::new(),
            stirred,
        })
    }

    pub(crate) fn push(&self, happening: Happening, bytes: usize) {
        let mut state = self.state();
        if state.left || state.ended {
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

    pub(crate) fn is_left(&self) -> bool {
        self.state().left
    }

    /// The next happening; nothing when no more will come.
    pub(crate) async fn pop(&self) -> Option<Happening> {
        loop {
            let filled = self.filled.notified();
            {
                let mut state = self.state();
                if let Some((happening, bytes)) = state.waiting.pop_front() {
                    state.bytes -= bytes;
                    if state.wanted && state.is_low() {
                        state.wanted = false;
                        self.stirred.notify_one();
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
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.left = true;
        state.waiting = VecDeque::new();
        state.bytes = 0;
        drop(state);
        self.stirred.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
