//! States of threads that this handle wrote last, so that an append need not look them up; and the
//! threads about which it is in doubt.
//!
//! The cache is never trusted: the statement of an append compares every part of the state that it
//! relies on.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use raddle_core::ThreadId;

use super::thread_state::ThreadState;

/// Maximum number of cached threads.
const THREADS_MAX: usize = 10_000;

/// Cached states, and doubts.
#[derive(Debug, Default)]
pub(super) struct StateCache {
    inner: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    states: HashMap<ThreadId, ThreadState>,
    in_doubt: HashSet<ThreadId>,
}

impl StateCache {
    pub(super) fn get(&self, thread: ThreadId) -> Option<ThreadState> {
        self.inner().states.get(&thread).cloned()
    }

    pub(super) fn put(&self, thread: ThreadId, state: ThreadState) {
        let mut inner = self.inner();
        if inner.states.len() >= THREADS_MAX && !inner.states.contains_key(&thread) {
            inner.states.clear();
        }
        inner.states.insert(thread, state);
    }

    pub(super) fn remove(&self, thread: ThreadId) {
        self.inner().states.remove(&thread);
    }

    /// Whether the outcome of a write to the thread is unknown.
    pub(super) fn is_in_doubt(&self, thread: ThreadId) -> bool {
        self.inner().in_doubt.contains(&thread)
    }

    /// Ends the doubt about a thread, by its state.
    pub(super) fn settle(&self, thread: ThreadId, state: ThreadState) {
        self.inner().in_doubt.remove(&thread);
        self.put(thread, state);
    }

    /// Guards a write: unless its outcome becomes known, the thread is in doubt.
    pub(super) fn writing(&self, thread: ThreadId) -> PendingWrite<'_> {
        let cache = self;
        PendingWrite { cache, thread }
    }

    fn inner(&self) -> MutexGuard<'_, CacheState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write whose outcome is not known yet. If the caller stops waiting, it stays unknown.
#[derive(Debug)]
pub(super) struct PendingWrite<'a> {
    cache: &'a StateCache,
    thread: ThreadId,
}

impl PendingWrite<'_> {
    /// Ends the guard: the outcome is known.
    pub(super) fn conclude(self) {
        std::mem::forget(self);
    }
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        let mut inner = self.cache.inner();
        inner.states.remove(&self.thread);
        inner.in_doubt.insert(self.thread);
    }
}
