//! Threads that were found damaged: from then on they take no append, whoever tries.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use raddle_core::ports::{AppendError, ReadError};
use raddle_core::{Seq, ThreadId};

/// The damaged threads that this process knows of, and where each breaks off. Another process finds the
/// same when it reads.
#[derive(Debug, Default)]
pub(super) struct Quarantine(Mutex<BTreeMap<ThreadId, Seq>>);

impl Quarantine {
    /// Passes on what came of a read, and remembers the thread if it is damaged.
    pub(super) fn note<T>(
        &self,
        thread: ThreadId,
        outcome: Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if let Err(ReadError::Corrupt { at, .. }) = &outcome {
            self.threads().entry(thread).or_insert(*at);
        }
        outcome
    }

    /// Refuses an append to a damaged thread: what follows damage could never be trusted.
    pub(super) fn check(&self, thread: ThreadId) -> Result<(), AppendError> {
        let Some(at) = self.threads().get(&thread).copied() else {
            return Ok(());
        };
        let what = format!("the thread is damaged at record {at}; export what is sound of it");
        Err(AppendError::ReadOnly(what))
    }

    /// The thread is gone, and its damage with it.
    pub(super) fn lift(&self, thread: ThreadId) {
        self.threads().remove(&thread);
    }

    fn threads(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Seq>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
