//! Where the indexer is told what is new.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many threads may wait to be looked at. If there are more, all are looked at.
const WAITING_MAX: usize = 4096;

/// How long new words may wait for others before they are taken in.
const LAG: Duration = Duration::from_secs(1);

/// Where the indexer is told what is new.
#[derive(Clone, Debug)]
pub(in crate::local) struct IndexSignal(Arc<SignalState>);

#[derive(Debug)]
struct SignalState {
    pending: Mutex<PendingThreads>,
    changed: Condvar,
}

/// What the indexer is to do.
#[derive(Debug, Default)]
pub(super) struct PendingThreads {
    /// Threads that have new words, or are gone.
    pub(super) threads: BTreeSet<i64>,
    /// All threads are to be looked at.
    pub(super) all: bool,
    /// Someone searches, so what is new is worth taking in now.
    hurry: bool,
    closed: bool,
}

impl IndexSignal {
    /// One that rings for all threads at first: what was left undone is begun with.
    pub(super) fn for_all() -> Self {
        let note = PendingThreads {
            all: true,
            ..PendingThreads::default()
        };
        Self(Arc::new(SignalState {
            pending: Mutex::new(note),
            changed: Condvar::new(),
        }))
    }

    /// One that nobody hears.
    pub(super) fn disconnected() -> Self {
        Self(Arc::new(SignalState {
            pending: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// A thread has new words, or is gone.
    pub(in crate::local) fn notify(&self, number: i64) {
        let mut note = self.pending();
        let idle = note.is_empty();
        if note.threads.len() < WAITING_MAX {
            note.threads.insert(number);
        } else {
            note.all = true;
        }
        // Whoever waits for more to come need not be woken for each.
        if idle {
            self.0.changed.notify_one();
        }
    }

    /// Someone searches.
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

    /// Waits until something is new and then a little longer, because much at once is cheaper than
    /// little often. Nothing when the journal is closed.
    pub(super) fn wait(&self) -> Option<PendingThreads> {
        let idle = |note: &mut PendingThreads| note.is_empty() && !note.closed;
        let changed = &self.0.changed;
        let note = changed.wait_while(self.pending(), idle);
        let note = note.unwrap_or_else(PoisonError::into_inner);
        let early = |note: &mut PendingThreads| !note.hurry && !note.closed;
        let note = changed.wait_timeout_while(note, LAG, early);
        let (mut note, _) = note.unwrap_or_else(PoisonError::into_inner);
        (!note.closed).then(|| std::mem::take(&mut *note))
    }
}

impl PendingThreads {
    fn is_empty(&self) -> bool {
        self.threads.is_empty() && !self.all
    }
}
