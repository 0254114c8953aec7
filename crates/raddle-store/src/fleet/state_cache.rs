//! States of threads that this handle wrote last, so that an append need not look them up; and the
//! threads about which it is in doubt.
//!
//! The cache is never trusted: the statement of an append compares every part of the state that it
//! relies on. A batch of the node log compares none of it, but that the log is not sealed: as long as
//! a thread's row names that log, no other node writes the thread. On this node, a write to the
//! thread's row and a delta on its way to the log exclude each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::{Seq, ThreadId};
use uuid::Uuid;

use super::delta_row::DeltaRow;
use super::node_log::{EnqueueError, LogPosition, NodeLog};
use super::thread_state::ThreadState;

/// Maximum number of cached threads.
const THREADS_MAX: usize = 10_000;

/// Maximum size of the deltas of one thread that only the node log has. Beyond it, the next append
/// copies them to rows of the thread.
const GATHERED_BYTES_MAX: usize = 256 << 10;

/// Cached states, and doubts.
#[derive(Debug, Default)]
pub(super) struct StateCache {
    inner: Mutex<CacheState>,
}

#[derive(Debug, Default)]
struct CacheState {
    states: HashMap<ThreadId, ThreadState>,
    /// Number of writes to the row of each thread that are going on.
    row_writes: HashMap<ThreadId, usize>,
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

    /// Returns the key of a thread's rows, if deltas after a record can go to a node log.
    pub(super) fn gathers(&self, thread: ThreadId, after: Seq, log: Uuid) -> Option<Uuid> {
        let inner = self.inner();
        let state = inner.states.get(&thread)?;
        let bytes: usize = state.gathered.iter().map(|row| row.weight()).sum();
        let fits = bytes <= GATHERED_BYTES_MAX;
        (state.gathers(after, log) && fits).then_some(state.log)
    }

    /// Begins a write to the row of a thread, unless deltas of it are on their way to the node log.
    /// Until it ends, none are sent there. Returns the state, and the end of the log before it.
    pub(super) fn begin_write(&self, thread: ThreadId, node_log: &NodeLog) -> Option<RowWrite<'_>> {
        let mut inner = self.inner();
        let position = node_log.position_of(thread)?;
        *inner.row_writes.entry(thread).or_default() += 1;
        Some(RowWrite {
            cache: self,
            thread,
            position,
            state: inner.states.get(&thread).cloned(),
        })
    }

    /// Returns the state of a thread, and the end of the node log before it, unless deltas of the
    /// thread are on their way to the log.
    pub(super) fn resolved(
        &self,
        thread: ThreadId,
        node_log: &NodeLog,
    ) -> Option<(Option<ThreadState>, LogPosition)> {
        let inner = self.inner();
        let position = node_log.position_of(thread)?;
        Some((inner.states.get(&thread).cloned(), position))
    }

    /// Adds deltas to the state of a thread if they could be queued for the node log. `None` means
    /// that they must go to the thread's rows.
    pub(super) fn gather(
        &self,
        thread: ThreadId,
        after: Seq,
        log: Uuid,
        rows: &[Arc<DeltaRow>],
        enqueue: impl FnOnce() -> Result<(), EnqueueError>,
    ) -> Option<Result<(), EnqueueError>> {
        let mut inner = self.inner();
        if inner.row_writes.contains_key(&thread) {
            return None;
        }
        let state = inner.states.get_mut(&thread)?;
        if !state.gathers(after, log) {
            return None;
        }
        let queued = enqueue();
        if queued.is_ok() {
            state.gathered.extend_from_slice(rows);
        }
        Some(queued)
    }

    /// Returns the newest delta of a thread that only the node log has.
    pub(super) fn newest_gathered(&self, thread: ThreadId) -> Option<Seq> {
        let inner = self.inner();
        let state = inner.states.get(&thread)?;
        state.gathered.last().map(|row| row.seq())
    }

    /// Whether this node stored a delta of a thread after a number, which only the node log has.
    pub(super) fn has_stored_after(
        &self,
        thread: ThreadId,
        after: Seq,
        node_log: &NodeLog,
    ) -> bool {
        let inner = self.inner();
        let state = inner.states.get(&thread);
        let newest = state.and_then(|it| it.gathered.last());
        newest.is_some_and(|row| row.seq() > after) && node_log.position_of(thread).is_some()
    }

    /// Follows a flush. Deltas may have been gathered meanwhile.
    pub(super) fn flushed(&self, thread: ThreadId, before: &ThreadState, after: &ThreadState) {
        let mut inner = self.inner();
        let cached = inner.states.get_mut(&thread);
        if let Some(cached) = cached.filter(|it| (it.log, it.head) == (before.log, before.head)) {
            cached.head = after.head;
            cached.since = after.since;
            cached.gathered.retain(|row| row.seq() > after.head);
        }
    }

    /// Forgets all states.
    pub(super) fn clear(&self) {
        self.inner().states.clear();
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

/// A write to the row of a thread, which excludes deltas on their way to the node log.
#[derive(Debug)]
pub(super) struct RowWrite<'a> {
    cache: &'a StateCache,
    thread: ThreadId,
    /// End of the node log before the state. The thread's row may say that the batches up to it have
    /// no deltas after its new head.
    pub(super) position: LogPosition,
    /// Cached state of the thread.
    pub(super) state: Option<ThreadState>,
}

impl Drop for RowWrite<'_> {
    fn drop(&mut self) {
        let mut inner = self.cache.inner();
        if let Some(count) = inner.row_writes.get_mut(&self.thread) {
            *count -= 1;
            if *count == 0 {
                inner.row_writes.remove(&self.thread);
            }
        }
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
