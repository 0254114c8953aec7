//! Threads that were found damaged. From then on they accept no appends, and lists skip those that
//! they cannot show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::ReadError;
use raddle_core::{Seq, ThreadId};

/// Damaged threads that this process knows of, by number: a thread recreated with the same id has
/// another number. Another process finds the same damage when it reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Quarantine(Arc<Mutex<QuarantineState>>);

#[derive(Debug, Default)]
struct QuarantineState {
    /// First damaged record of each thread.
    records: BTreeMap<i64, Seq>,
    /// Threads that a list skipped.
    unlisted: BTreeSet<i64>,
}

impl Quarantine {
    /// Returns the result of a read, and quarantines the thread if one of its records is damaged.
    /// An error without a record number concerns derived data only, so the records stay usable.
    pub(super) fn note<T>(
        &self,
        number: i64,
        outcome: Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if let Err(ReadError::Corrupt { at, .. }) = &outcome
            && *at > Seq::ZERO
        {
            self.state().records.entry(number).or_insert(*at);
        }
        outcome
    }

    /// Returns the first damaged record of a thread. Records after it could never be trusted.
    pub(super) fn at(&self, number: i64) -> Option<Seq> {
        self.state().records.get(&number).copied()
    }

    /// Notes that a list skips a thread, and logs it once.
    pub(super) fn pass_over(&self, number: i64, thread: Option<ThreadId>, why: &impl Display) {
        if self.state().unlisted.insert(number) {
            tracing::warn!(
                thread = thread.map(tracing::field::display),
                number,
                why = why.to_string(),
                "a damaged thread is not listed: run `raddle thread verify`"
            );
        }
    }

    fn state(&self) -> MutexGuard<'_, QuarantineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
