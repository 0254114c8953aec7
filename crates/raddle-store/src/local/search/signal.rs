//! Signal to the indexer that threads have changed, and which ones.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of pending threads. Beyond it, all threads are checked.
const WAITING_MAX: usize = 4096;

/// Time that new text waits for more before it is indexed.
const LAG: Duration = Duration::from_secs(1);

/// Signal to the indexer. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::local) struct IndexSignal(Arc<SignalState>);

#[derive(Debug)]
struct SignalState {
    pending: Mutex<PendingThreads>,
    changed: Condvar,
}

/// Pending work of the indexer.
#[derive(Debug, Default)]
pub(super) struct PendingThreads {
    /// Threads that have new text or were deleted.
    pub(super) threads: BTreeSet<i64>,
    /// Whether all threads are to be checked.
    pub(super) all: bool,
    /// Whether a search is running, so that new text is indexed at once.
    hurry: bool,
    closed: bool,
}

impl IndexSignal {
    /// Creates a signal with all threads pending, to resume unfinished work.
    pub(super) fn for_all() -> Self {
        let pending = PendingThreads {
            all: true,
            ..PendingThreads::default()
        };
        Self(Arc::new(SignalState {
            pending: Mutex::new(pending),
            changed: Condvar::new(),
        }))
    }

    /// Creates a signal without an indexer.
    pub(super) fn disconnected() -> Self {
        Self(Arc::new(SignalState {
            pending: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Marks a thread as changed or deleted.
    pub(in crate::local) fn notify(&self, number: i64) {
        let mut pending = self.pending();
        let idle = pending.is_empty();
        if pending.threads.len() < WAITING_MAX {
            pending.threads.insert(number);
        } else {
            pending.all = true;
        }
        // The indexer waits for more threads anyway, so it is woken only once.
        if idle {
            self.0.changed.notify_one();
        }
    }

    /// Wakes the indexer because a search is running.
    pub(in crate::local) fn hurry(&self) {
        self.pending().hurry = true;
        self.0.changed.notify_one();
    }

    pub(super) fn close(&self) {
        self.pending().closed = true;
        self.0.changed.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.pending().closed
    }

    fn pending(&self) -> MutexGuard<'_, PendingThreads> {
        self.0
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for pending work, and then a little longer, because large batches are cheaper than
    /// many small ones. Returns `None` when the journal is closed.
    pub(super) fn wait(&self) -> Option<PendingThreads> {
        let idle = |pending: &mut PendingThreads| pending.is_empty() && !pending.closed;
        let changed = &self.0.changed;
        let pending = changed.wait_while(self.pending(), idle);
        let pending = pending.unwrap_or_else(PoisonError::into_inner);
        let early = |pending: &mut PendingThreads| !pending.hurry && !pending.closed;
        let pending = changed.wait_timeout_while(pending, LAG, early);
        let (mut pending, _) = pending.unwrap_or_else(PoisonError::into_inner);
        (!pending.closed).then(|| std::mem::take(&mut *pending))
    }
}

impl PendingThreads {
    fn is_empty(&self) -> bool {
        self.threads.is_empty() && !self.all
    }
}
