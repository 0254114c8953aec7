//! A journal in memory, for tests and for threads that need not outlive the process.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use raddle_core::ports::{
    AppendError, Blobs, ForkError, ItemEntry, Journal, ListQuery, Mark, Page, PageQuery, Pages,
    ReadError, Summary, TurnEntry, Waiting,
};
use raddle_core::{Base, Blob, Body, Class, Event, ItemId, Record, Seq, ThreadId, TurnId};

use crate::blob::{self, Hash};
use crate::cuts::Cuts;
use crate::page::{self, ListCursor, Numbered};
use crate::records::{item_of, rise};
use crate::text::searchable;

/// A journal in memory.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    threads: BTreeMap<ThreadId, Log>,
    blobs: BTreeMap<Hash, Bytes>,
}

/// A blob.
#[derive(Debug)]
struct Bytes {
    bytes: Vec<u8>,
    /// How many records name it.
    names: usize,
    /// How often it was put and not yet named, and when that last happened.
    waiting: usize,
    put: Instant,
}

/// How long a blob that was put may wait for a record that names it.
const UNNAMED_MAX: Duration = Duration::from_secs(60 * 60);

/// One thread.
#[derive(Debug, Default)]
struct Log {
    head: Seq,
    /// The newest record that is no delta.
    event_head: Seq,
    records: BTreeMap<Seq, Record>,
    bases: BTreeMap<Seq, Base>,
    summary: Option<Summary>,
    turns: BTreeMap<Seq, TurnEntry>,
    cuts: Cuts,
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What a panic left behind is still a journal: every change below is made after its checks.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(
        &self,
        thread: ThreadId,
        after: Seq,
        records: &[Record],
    ) -> Result<Seq, AppendError> {
        let mut kept = self.kept();
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
        let mut kept = self.kept();
        let log = kept.log(from)?;
        if kept.threads.contains_key(&to) {
            return Err(ForkError::Taken);
        }
        if at > log.head {
            return Err(ForkError::Beyond { head: log.head });
        }
        let mut fork = Log::default();
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

/// The blobs that records name, each as often as it is named.
fn named<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<Vec<Hash>, AppendError> {
    let events = records.into_iter().filter_map(|it| match &it.body {
        Body::Event(event) => Some(event),
        Body::Delta(_) => None,
    });
    let named = events.flat_map(|event| blob::named(event));
    let hash = |name: &Blob| {
        let no_name = || blob::missing(&format!("{:?}", name.hash));
        blob::parse(&name.hash).ok_or_else(no_name)
    };
    named.map(hash).collect()
}

/// Whether the head is where the writer thinks it is.
fn fence_opens(log: Option<&Log>, after: Seq) -> bool {
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

impl Log {
    fn append(&mut self, record: &Record) {
        self.head = record.seq;
        Summary::fold(&mut self.summary, record);
        if let Body::Event(event) = &record.body {
            self.event_head = record.seq;
            if let Some(item) = event.settles() {
                self.forget_deltas(item);
            }
            self.turn(event, record);
        }
        self.records.insert(record.seq, record.clone());
    }

    fn forget_deltas(&mut self, item: &ItemId) {
        self.records
            .retain(|_, record| !matches!(&record.body, Body::Delta(delta) if delta.item == *item));
    }

    fn turn(&mut self, event: &Event, record: &Record) {
        match event {
            Event::TurnStarted(it) => {
                let entry = TurnEntry {
                    turn: it.turn.clone(),
                    root: it.root.clone(),
                    from: record.seq,
                    started_at: record.at,
                    ended: None,
                };
                self.turns.insert(record.seq, entry);
            }
            Event::TurnEnded(it) => {
                let last = self.turns.values_mut().next_back();
                if let Some(turn) = last.filter(|turn| turn.turn == it.turn) {
                    turn.ended = Some((it.end.clone(), record.at));
                }
            }
            Event::Reverted(it) => self.cuts.cut(it.at, record.seq),
            _ => {}
        }
    }

    fn items(&self, turn: Option<&TurnId>) -> Vec<ItemEntry> {
        let records = self.records.values();
        let items = records.filter_map(|record| {
            let Body::Event(event) = &record.body else {
                return None;
            };
            let (of, item) = item_of(event)?;
            let counts = turn.is_none_or(|turn| turn == of) && !self.cuts.holds(record.seq);
            counts.then(|| ItemEntry {
                turn: of.clone(),
                seq: record.seq,
                item: item.clone(),
            })
        });
        items.collect()
    }
}

/// About how much a record weighs on a page of records.
fn weight(record: &Record) -> usize {
    serde_json::to_vec(record).map_or(0, |bytes| bytes.len())
}

/// A page of what there is. It ends early where what is on it weighs too much.
fn numbered<T: Numbered>(
    mut all: Vec<T>,
    query: &PageQuery,
    weight: impl Fn(&T) -> usize,
) -> Result<Page<T>, ReadError> {
    let mark = page::mark(query.cursor.as_deref())?;
    if query.newest_first {
        all.reverse();
    }
    all.retain(|it| match mark {
        Some(Mark { seq, included }) if it.seq() == seq => included,
        Some(Mark { seq, .. }) => (it.seq() < seq) == query.newest_first,
        None => true,
    });
    let mut bytes = 0;
    let fits = all.iter().take(page::limit(query.limit)).take_while(|it| {
        let fits = bytes < page::ITEMS_BYTES_MAX;
        bytes += weight(it);
        fits
    });
    let fits = fits.count();
    let more = all.len() > fits;
    all.truncate(fits);
    Ok(page::of_numbered(all, more))
}

impl Kept {
    fn log(&self, thread: ThreadId) -> Result<&Log, ReadError> {
        self.threads.get(&thread).ok_or(ReadError::NotFound)
    }

    /// So many more records name these.
    fn name(&mut self, named: &[Hash]) {
        for hash in named {
            if let Some(bytes) = self.blobs.get_mut(hash) {
                bytes.names += 1;
            }
        }
    }

    /// Forgets what nothing names and nobody waits to name.
    fn tidy(&mut self) {
        self.blobs.retain(|_, blob| {
            blob.names > 0 || (blob.waiting > 0 && blob.put.elapsed() < UNNAMED_MAX)
        });
    }

    fn list(
        &self,
        query: &ListQuery,
        wanted: impl Fn(&Log) -> bool,
    ) -> Result<Page<Summary>, ReadError> {
        let cursor = ListCursor::parse(query)?;
        let leads_to = |it: &Summary| {
            let place = page::place(it, query.order);
            cursor.is_none_or(|cursor| cursor.leads_to(place, query.oldest_first))
        };
        let threads = self.threads.iter().filter(|(_, log)| wanted(log));
        let summaries = threads.filter_map(|(id, log)| {
            let summary = log.summary.as_ref()?;
            // Before its own first record, a copy still has the other thread's name on it.
            (summary.thread == *id).then_some(summary)
        });
        let mut found: Vec<Summary> = summaries
            .filter(|it| query.takes(it) && leads_to(it))
            .cloned()
            .collect();
        page::arrange(&mut found, query);
        Ok(page::of_threads(found, query))
    }
}

impl Journal for MemoryJournal {
    fn append<'a>(
        &'a self,
        thread: ThreadId,
        after: Seq,
        records: &'a [Record],
        _class: Class,
    ) -> Waiting<'a, Result<Seq, AppendError>> {
        Box::pin(ready(self.append_now(thread, after, records)))
    }

    fn head(&self, thread: ThreadId) -> Waiting<'_, Result<Seq, ReadError>> {
        let kept = self.kept();
        let head = kept.threads.get(&thread).map_or(Seq::ZERO, |log| log.head);
        Box::pin(ready(Ok(head)))
    }

    fn read(
        &self,
        thread: ThreadId,
        after: Seq,
        bytes_max: usize,
    ) -> Waiting<'_, Result<Vec<Record>, ReadError>> {
        let kept = self.kept();
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
    ) -> Waiting<'_, Result<Option<Base>, ReadError>> {
        let kept = self.kept();
        let base = kept.threads.get(&thread).and_then(|log| {
            let bases = log.bases.range(..=at.unwrap_or(Seq(u64::MAX)));
            bases.map(|(_, base)| base).next_back().cloned()
        });
        Box::pin(ready(Ok(base)))
    }

    fn save_base(&self, thread: ThreadId, base: Base) -> Waiting<'_, Result<(), AppendError>> {
        if let Some(log) = self.kept().threads.get_mut(&thread) {
            log.bases.insert(base.thread.head(), base);
        }
        Box::pin(ready(Ok(())))
    }

    fn fork(&self, from: ThreadId, at: Seq, to: ThreadId) -> Waiting<'_, Result<Seq, ForkError>> {
        Box::pin(ready(self.fork_now(from, at, to)))
    }

    fn delete(&self, thread: ThreadId) -> Waiting<'_, Result<(), AppendError>> {
        let mut kept = self.kept();
        if let Some(log) = kept.threads.remove(&thread) {
            for hash in log.blobs() {
                if let Some(blob) = kept.blobs.get_mut(&hash) {
                    blob.names = blob.names.saturating_sub(1);
                }
            }
            kept.tidy();
        }
        Box::pin(ready(Ok(())))
    }
}

impl Log {
    fn blobs(&self) -> Vec<Hash> {
        // What is stored has only good names.
        named(self.records.values()).unwrap_or_default()
    }
}

impl Pages for MemoryJournal {
    fn list(&self, query: ListQuery) -> Waiting<'_, Result<Page<Summary>, ReadError>> {
        Box::pin(ready(self.kept().list(&query, |_| true)))
    }

    fn turns(
        &self,
        thread: ThreadId,
        query: PageQuery,
    ) -> Waiting<'_, Result<Page<TurnEntry>, ReadError>> {
        let kept = self.kept();
        let page = kept.log(thread).and_then(|log| {
            let turns = log.turns.iter().filter(|(from, _)| !log.cuts.holds(**from));
            numbered(turns.map(|(_, it)| it.clone()).collect(), &query, |_| 0)
        });
        Box::pin(ready(page))
    }

    fn items(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        query: PageQuery,
    ) -> Waiting<'_, Result<Page<ItemEntry>, ReadError>> {
        let kept = self.kept();
        let log = kept.log(thread);
        let page = log.and_then(|log| {
            let weigh = |it: &ItemEntry| log.records.get(&it.seq).map_or(0, weight);
            numbered(log.items(turn.as_ref()), &query, weigh)
        });
        Box::pin(ready(page))
    }

    fn search(
        &self,
        text: String,
        query: ListQuery,
    ) -> Waiting<'_, Result<Page<Summary>, ReadError>> {
        let text = text.to_lowercase();
        let short = text.chars().count() < page::LETTERS_MIN;
        let holds = |log: &Log| {
            !short
                && log.records.values().any(|record| match &record.body {
                    Body::Event(event) => {
                        searchable(event).is_some_and(|it| it.to_lowercase().contains(&text))
                    }
                    Body::Delta(_) => false,
                })
        };
        Box::pin(ready(self.kept().list(&query, holds)))
    }
}

impl Blobs for MemoryJournal {
    fn put(&self, bytes: Vec<u8>, media: String) -> Waiting<'_, Result<Blob, AppendError>> {
        let hash = blob::hash(&bytes);
        let name = Blob {
            hash: blob::hex(&hash),
            bytes: bytes.len() as u64,
            media,
        };
        let mut kept = self.kept();
        kept.tidy();
        let blob = kept.blobs.entry(hash).or_insert(Bytes {
            bytes,
            names: 0,
            waiting: 0,
            put: Instant::now(),
        });
        blob.waiting += 1;
        blob.put = Instant::now();
        Box::pin(ready(Ok(name)))
    }

    fn get(&self, blob: Blob) -> Waiting<'_, Result<Vec<u8>, ReadError>> {
        let hash = blob::parse(&blob.hash);
        let kept = self.kept();
        let bytes = hash.and_then(|hash| kept.blobs.get(&hash).map(|it| it.bytes.clone()));
        Box::pin(ready(bytes.ok_or(ReadError::NotFound)))
    }
}
