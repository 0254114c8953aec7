//! A journal in memory, for tests and for threads that need not outlive the process.

mod blobs;
mod log;
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard, PoisonError};

use raddle_core::ports::{AppendError, BoxFuture, ForkError, Journal, ReadError};
use raddle_core::{Base, Class, Record, Seq, ThreadId};

use crate::blob::{self, Hash};
use crate::records::rise;
use blobs::{StoredBlob, named};
use log::{ThreadLog, weight};

/// A journal in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    threads: BTreeMap<ThreadId, ThreadLog>,
    blobs: BTreeMap<Hash, StoredBlob>,
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // What a panic left behind is still a journal: every change below is made after its checks.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(
        &self,
        thread: ThreadId,
        after: Seq,
        records: &[Record],
    ) -> Result<Seq, AppendError> {
        let mut kept = self.state();
        let log = kept.threads.get(&thread);
        if !fence_opens(log, after) || !rise(after, records) {
            return Err(AppendError::Conflict);
        }
        if records.is_empty() {
            return Ok(after);
        }
        let named = named(records)?;
        if let Some(missing) = named.iter().find(|hash| !kept.blobs.contains_key(*hash)) {
            return Err(blob::missing(&blob::hex(missing)));
        }
        kept.name(&named);
        let waited: BTreeSet<Hash> = named.into_iter().collect();
        for hash in &waited {
            if let Some(blob) = kept.blobs.get_mut(hash) {
                blob.waiting = blob.waiting.saturating_sub(1);
            }
        }
        let log = kept.threads.entry(thread).or_default();
        for record in records {
            log.append(record);
        }
        Ok(log.head)
    }

    fn fork_now(&self, from: ThreadId, at: Seq, to: ThreadId) -> Result<Seq, ForkError> {
        let mut kept = self.state();
        let log = kept.log(from)?;
        if kept.threads.contains_key(&to) {
            return Err(ForkError::Taken);
        }
        if at > log.head {
            return Err(ForkError::Beyond { head: log.head });
        }
        let mut fork = ThreadLog::default();
        for (_, record) in log.records.range(..=at) {
            fork.append(record);
        }
        // One that ends with a delta may say more than the fork has, if the delta is gone.
        let bases = log.bases.range(..=fork.event_head);
        fork.bases
            .extend(bases.map(|(head, base)| (*head, base.clone())));
        let (head, named) = (fork.head, fork.blobs());
        kept.name(&named);
        kept.threads.insert(to, fork);
        Ok(head)
    }
}

/// Whether the head is where the writer thinks it is.
fn fence_opens(log: Option<&ThreadLog>, after: Seq) -> bool {
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

    fn head(&self, thread: ThreadId) -> BoxFuture<'_, Result<Seq, ReadError>> {
        let kept = self.state();
        let head = kept.threads.get(&thread).map_or(Seq::ZERO, |log| log.head);
        Box::pin(ready(Ok(head)))
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, ReadError>> {
        let kept = self.state();
        let records = kept.log(thread).map(|log| {
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
        let kept = self.state();
        let base = kept.threads.get(&thread).and_then(|log| {
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
        let mut kept = self.state();
        if kept
            .log(thread)
            .is_ok_and(|log| log.head == head && log.is_deleted())
        {
            kept.delete(thread);
        }
        Box::pin(ready(Ok(())))
    }
}
