//! In-memory journal, for tests and for threads that need not outlive the process.

mod blobs;
mod log;
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::{
    AppendError, BoxFuture, Durability, ForkError, Journal, ReadError, StoreTimeouts,
};
use raddle_core::{Base, Class, Record, Seq, ThreadId};

use crate::blob::{self, Hash};
use crate::records::are_ascending;
use crate::transfer::ThreadStore;
use blobs::{StoredBlob, referenced};
use log::{ThreadLog, weight};

/// Journal that stores records in memory only. Clones are handles of the same journal.
#[derive(Clone, Debug, Default)]
pub struct MemoryJournal {
    state: Arc<Mutex<MemoryState>>,
}

#[derive(Debug, Default)]
struct MemoryState {
    threads: BTreeMap<ThreadId, ThreadLog>,
    blobs: BTreeMap<Hash, StoredBlob>,
}

impl MemoryJournal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // State after a panic is still consistent: every change below is made after its checks.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(
        &self,
        thread: ThreadId,
        after: Seq,
        records: &[Record],
    ) -> Result<Seq, AppendError> {
        let mut state = self.state();
        let log = state.threads.get(&thread);
        if !fence_matches(log, after) || !are_ascending(after, records) {
            return Err(AppendError::Conflict);
        }
        if records.is_empty() {
            return Ok(after);
        }
        let hashes = referenced(records)?;
        if let Some(missing) = hashes.iter().find(|hash| !state.blobs.contains_key(*hash)) {
            return Err(blob::missing(&blob::hex(missing)));
        }
        state.add_references(&hashes);
        let unique: BTreeSet<Hash> = hashes.into_iter().collect();
        for hash in &unique {
            if let Some(blob) = state.blobs.get_mut(hash) {
                blob.waiting = blob.waiting.saturating_sub(1);
            }
        }
        let log = state.threads.entry(thread).or_default();
        for record in records {
            log.append(record);
        }
        Ok(log.head)
    }

    fn fork_now(&self, from: ThreadId, at: Seq, to: ThreadId) -> Result<Seq, ForkError> {
        let mut state = self.state();
        let log = state.log(from)?;
        if state.threads.contains_key(&to) {
            return Err(ForkError::Taken);
        }
        if at > log.head {
            return Err(ForkError::Beyond { head: log.head });
        }
        let mut fork = ThreadLog::default();
        for (_, record) in log.records.range(..=at) {
            fork.append(record);
        }
        // A base that ends with a delta may hold more than the fork has, if the delta was deleted.
        let bases = log.bases.range(..=fork.event_head);
        fork.bases
            .extend(bases.map(|(head, base)| (*head, base.clone())));
        let (head, hashes) = (fork.head, fork.blobs());
        state.add_references(&hashes);
        state.threads.insert(to, fork);
        Ok(head)
    }
}

/// Whether the head matches the writer's expectation.
fn fence_matches(log: Option<&ThreadLog>, after: Seq) -> bool {
    #[cfg(feature = "planted")]
    {
        use raddle_core::Bug;
        if Bug::TwoWriters.is_planted() {
            return true;
        }
        if Bug::ZombieAfterDeltas.is_planted() {
            return log.map_or(Seq::ZERO, |log| log.event_head) <= after;
        }
    }
    log.map_or(Seq::ZERO, |log| log.head) == after
}

impl MemoryState {
    fn log(&self, thread: ThreadId) -> Result<&ThreadLog, ReadError> {
        self.threads.get(&thread).ok_or(ReadError::NotFound)
    }

    fn delete(&mut self, thread: ThreadId) {
        let Some(log) = self.threads.remove(&thread) else {
            return;
        };
        for hash in log.blobs() {
            if let Some(blob) = self.blobs.get_mut(&hash) {
                blob.names = blob.names.saturating_sub(1);
            }
        }
        self.tidy();
    }
}

impl Journal for MemoryJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        _class: Class,
    ) -> BoxFuture<'a, Result<Seq, AppendError>> {
        Box::pin(ready(self.append_now(thread, after, records)))
    }

    /// Returns the head: no delta of the former node is gathered outside the thread.
    fn take<'a>(
        &'a self,
        thread: ThreadId,
        _former: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Seq, ReadError>> {
        self.head(thread)
    }

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        let state = self.state();
        let head = state.threads.get(&thread).map_or(Seq::ZERO, |log| log.head);
        Box::pin(ready(Ok(head)))
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        let state = self.state();
        let records = state.log(thread).map(|log| {
            let mut bytes = 0;
            let rest = log.records.range((Excluded(after), Unbounded));
            let records = rest.map(|(_, record)| record).take_while(|record| {
                let first = bytes == 0;
                bytes += weight(record);
                first || bytes <= bytes_max
            });
            records.cloned().collect()
        });
        Box::pin(ready(records))
    }

    fn base(
        &self,
        thread: ThreadId,
        at: Option<Seq>,
    ) -> BoxFuture<'_, Result<Option<Base>, ReadError>> {
        let state = self.state();
        let base = state.threads.get(&thread).and_then(|log| {
            let bases = log.bases.range(..=at.unwrap_or(Seq(u64::MAX)));
            bases.map(|(_, base)| base).next_back().cloned()
        });
        Box::pin(ready(Ok(base)))
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> BoxFuture<'_, Result<(), AppendError>> {
        if let Some(log) = self.state().threads.get_mut(&thread) {
            log.bases.insert(base.thread.head(), base);
        }
        Box::pin(ready(Ok(())))
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> BoxFuture<'_, Result<Seq, ForkError>> {
        Box::pin(ready(self.fork_now(from, at, to)))
    }

    fn delete(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), AppendError>> {
        self.state().delete(thread);
        Box::pin(ready(Ok(())))
    }

    fn forget(&self, thread: ThreadId, head: Seq) -> BoxFuture<'_, Result<(), AppendError>> {
        let mut state = self.state();
        if state
            .log(thread)
            .is_ok_and(|log| log.head == head && log.is_deleted())
        {
            state.delete(thread);
        }
        Box::pin(ready(Ok(())))
    }

    fn timeouts(&self) -> StoreTimeouts {
        StoreTimeouts::LOCAL
    }

    fn durability(&self) -> Durability {
        Durability::Local
    }
}

impl ThreadStore for MemoryJournal {
    fn ids(&self, after: Option<ThreadId>) -> BoxFuture<'_, Result<Vec<ThreadId>, ReadError>> {
        let after = after.map_or(Unbounded, Excluded);
        let state = self.state();
        let ids = state.threads.range((after, Unbounded)).map(|(id, _)| *id);
        Box::pin(ready(Ok(ids.collect())))
    }
}
