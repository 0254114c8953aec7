//! Threads that were found damaged: from then on they take no append, whoever tries, and lists go on without
//! those that they cannot show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::ReadError;
use raddle_core::{Seq, ThreadId};

/// The damaged threads that this process knows of, by their numbers: a thread that comes back under the same
/// id has another. Another process finds the same when it reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Quarantine(Arc<Mutex<QuarantineState>>);

#[derive(Debug, Default)]
struct QuarantineState {
    /// The first record that is not what was written.
    records: BTreeMap<i64, Seq>,
    /// Those that a list went on without.
    unlisted: BTreeSet<i64>,
}

impl Quarantine {
    /// Passes on what came of a read, and remembers the thread if a record of it is damaged. Where no record
    /// is named, only what is made from them is, and they can go on.
    pub(super) fn note<T>(
        &self,
        number: i64,
        outcome: Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if let Err(ReadError::Corrupt { at, .. }) = &outcome
            && *at > Seq::ZERO
        {
            self.found().records.entry(number).or_insert(*at);
        }
        outcome
    }

    /// Where a thread is damaged. What follows damage could never be trusted.
    pub(super) fn at(&self, number: i64) -> Option<Seq> {
        self.found().records.get(&number).copied()
    }

    /// A list goes on without a thread, which is said once.
    pub(super) fn pass_over(&self, number: i64, thread: Option<ThreadId>, why: &impl Display) {
        if self.found().unlisted.insert(number) {
            tracing::warn!(
                thread = thread.map(tracing::field::display),
                number,
                %why,
                "a damaged thread is not listed; `raddle thread verify` says what to do"
            );
        }
    }

    fn found(&self) -> MutexGuard<'_, QuarantineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
