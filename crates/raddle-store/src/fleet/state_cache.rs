//! States of threads that this handle wrote last, so that an append need not look them up; and the
//! threads about which it is in doubt.
//!
//! The cache is never trusted: the statement of an append compares every part of the state that it
//! relies on.

use std::collections::HashMap;
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
    /// Number of the newest doubt about each thread.
    in_doubt: HashMap<ThreadId, u64>,
    /// Number of doubts so far.
    doubts: u64,
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
        self.inner().in_doubt.contains_key(&thread)
    }

    /// Returns the number of doubts so far.
    pub(super) fn doubts(&self) -> u64 {
        self.inner().doubts
    }

    /// Ends the doubts about a thread up to a number. A newer one stays: the write that settles may
    /// have been before the one that is in doubt.
    pub(super) fn settle(&self, thread: ThreadId, doubts: u64) {
        let mut inner = self.inner();
        inner.states.remove(&thread);
        if inner.in_doubt.get(&thread).is_some_and(|it| *it <= doubts) {
            inner.in_doubt.remove(&thread);
        }
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
        inner.doubts += 1;
        let number = inner.doubts;
        inner.in_doubt.insert(self.thread, number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_outlives_a_write_that_began_before_it() {
        let (cache, thread) = (StateCache::default(), ThreadId::mint());
        drop(cache.writing(thread));
        let begun = cache.doubts();
        drop(cache.writing(thread));
        cache.settle(thread, begun);
        assert!(cache.is_in_doubt(thread));
        cache.settle(thread, cache.doubts());
        assert!(!cache.is_in_doubt(thread));
        cache.writing(thread).conclude();
        assert!(!cache.is_in_doubt(thread));
    }
}
