//! Ledger of acknowledged records, separate from the journal, to check the journal against.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use raddle_core::ports::{
    AppendError, Blobs, Journal, ListQuery, PageQuery, Pages, ReadError, Summary,
};
use raddle_core::{Blob, Class, Record, RecordBody, Seq, Thread, ThreadId};
use raddle_store::{Archive, LocalJournal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use support::hash;

use crate::live::{AppendListener, fold};

/// Output of a writer to its parent, which may kill it; one line each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WriterLine {
    /// The journal is open.
    Ready,
    /// These records are stored.
    Acknowledged {
        thread: ThreadId,
        power: bool,
        marks: Vec<Mark>,
    },
    Failed {
        error: String,
        power: bool,
    },
    /// A turn that a full disk left open was ended, if that could be stored.
    TurnFailed {
        stored: bool,
    },
    /// A thread is about to be deleted.
    Deleting(ThreadId),
    /// The thread is deleted.
    Deleted(ThreadId),
    /// A thread is about to be forked at a record, as another.
    Forking {
        from: ThreadId,
        at: Seq,
        to: ThreadId,
    },
    /// The script is over.
    Done,
}

/// Identity of a record, for comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    seq: Seq,
    hash: u64,
    /// Item of the delta; `None` for events.
    piece_of: Option<String>,
    /// Item whose deltas are no longer needed.
    settles: Option<String>,
    /// Hashes of the blobs that it refers to.
    blobs: Vec<String>,
}

impl Mark {
    pub fn of(record: &Record) -> Self {
        let json = serde_json::to_vec(record).unwrap_or_default();
        let (piece_of, settles) = match &record.body {
            RecordBody::Delta(delta) => (Some(delta.item.to_string()), None),
            RecordBody::Event(event) => (None, event.settles().map(ToString::to_string)),
        };
        let mut blobs = Vec::new();
        if piece_of.is_none()
            && let Ok(value) = serde_json::from_slice(&json)
        {
            find_blobs(&value, &mut blobs);
        }
        Self {
            seq: record.seq,
            hash: hash(&json),
            piece_of,
            settles,
            blobs,
        }
    }
}

/// Returns the content of the blobs that records of a thread refer to.
pub async fn blobs_of(
    store: &LocalJournal,
    id: ThreadId,
    records: &[Record],
) -> Result<Vec<Vec<u8>>> {
    let marks = records.iter().map(Mark::of);
    let hashes: BTreeSet<String> = marks.flat_map(|mark| mark.blobs).collect();
    let mut blobs = Vec::new();
    for hash in hashes {
        blobs.push(blob(store, id, &hash).await?);
    }
    Ok(blobs)
}

async fn blob(store: &LocalJournal, id: ThreadId, hash: &str) -> Result<Vec<u8>> {
    let blob = Blob {
        hash: hash.to_owned(),
        bytes: 0,
        media: String::new(),
    };
    let bytes = store.get(id, blob).await;
    bytes.with_context(|| format!("the blob {hash}, which a record names"))
}

/// Collects the hashes of blobs: every blob has these members, and nothing else has.
fn find_blobs(value: &Value, blobs: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let (Some(Value::String(hash)), Some(_), Some(_)) = (
                members.get("hash"),
                members.get("bytes"),
                members.get("media"),
            ) {
                blobs.push(hash.clone());
            }
            members.values().for_each(|it| find_blobs(it, blobs));
        }
        Value::Array(values) => values.iter().for_each(|it| find_blobs(it, blobs)),
        _ => {}
    }
}

/// Acknowledged records and fate of one thread.
#[derive(Clone, Debug, Default)]
struct Account {
    acknowledged: BTreeMap<Seq, Mark>,
    fate: ThreadFate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThreadFate {
    #[default]
    Lives,
    /// Its deletion has begun.
    MayBeGone,
    Gone,
    /// It was to be forked from another thread, which may not have happened.
    MayBe,
}

/// All acknowledged records.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    threads: BTreeMap<ThreadId, Account>,
    /// Number of acknowledged records.
    pub records: u64,
    /// Number of those that must survive a loss of power.
    pub power: u64,
    /// Number of failed appends.
    pub failures: u64,
    /// Number of turns that a full disk left open and that were ended.
    pub turns_failed: u64,
    /// Number of turns that could not be ended.
    pub turns_left_open: u64,
    /// Whether a sync failed.
    in_doubt: bool,
    /// Number of acknowledged appends of class *power* after that.
    pub power_after_doubt: u64,
}

impl AppendListener for Ledger {
    fn stored(&mut self, thread: ThreadId, records: &[Record], class: Class) {
        self.record(WriterLine::Acknowledged {
            thread,
            power: class == Class::Power,
            marks: records.iter().map(Mark::of).collect(),
        });
    }

    fn failed(&mut self, error: &AppendError, class: Class) {
        self.record(WriterLine::Failed {
            error: format!("{error:?}"),
            power: class == Class::Power,
        });
    }
}

impl Ledger {
    /// Records a line of a writer.
    pub fn record(&mut self, line: WriterLine) {
        match line {
            WriterLine::Ready | WriterLine::Done => {}
            WriterLine::Acknowledged {
                thread,
                power,
                marks,
            } => {
                self.records += marks.len() as u64;
                self.power += u64::from(power) * marks.len() as u64;
                self.power_after_doubt += u64::from(power && self.in_doubt);
                let account = self.threads.entry(thread).or_default();
                if account.fate == ThreadFate::MayBe {
                    account.fate = ThreadFate::Lives;
                }
                account
                    .acknowledged
                    .extend(marks.into_iter().map(|mark| (mark.seq, mark)));
            }
            WriterLine::Failed { error, .. } => {
                self.failures += 1;
                self.in_doubt |= error.starts_with("Unknown");
            }
            WriterLine::TurnFailed { stored: true } => self.turns_failed += 1,
            WriterLine::TurnFailed { stored: false } => self.turns_left_open += 1,
            WriterLine::Deleting(thread) => self.fate(thread, ThreadFate::MayBeGone),
            WriterLine::Deleted(thread) => self.fate(thread, ThreadFate::Gone),
            WriterLine::Forking { from, at, to } => {
                let parent = self.threads.get(&from).cloned().unwrap_or_default();
                let acknowledged = parent
                    .acknowledged
                    .into_iter()
                    .filter(|(seq, _)| *seq <= at);
                let account = Account {
                    acknowledged: acknowledged.collect(),
                    fate: ThreadFate::MayBe,
                };
                self.threads.insert(to, account);
            }
        }
    }

    fn fate(&mut self, thread: ThreadId, fate: ThreadFate) {
        self.threads.entry(thread).or_default().fate = fate;
    }

    /// Checks every thread of the journal against its acknowledged records, and settles the fate of
    /// threads that may be deleted. Returns the existing threads.
    pub async fn check(&mut self, store: &LocalJournal) -> Result<Vec<ThreadId>> {
        let listed = listed(store).await?;
        let mut existing = Vec::new();
        for (id, account) in &mut self.threads {
            let check = account.check(store, *id, listed.get(id));
            let exists = check.await.with_context(|| format!("thread {id}"))?;
            if exists {
                existing.push(*id);
            }
        }
        Ok(existing)
    }
}

impl Account {
    /// Checks a thread. Returns whether it exists.
    async fn check(
        &mut self,
        store: &LocalJournal,
        id: ThreadId,
        summary: Option<&Summary>,
    ) -> Result<bool> {
        let head = store.head(id).await?;
        if head == Seq::ZERO {
            ensure!(summary.is_none(), "a list shows it and it is not there");
            let may_be_gone =
                !matches!(self.fate, ThreadFate::Lives) || self.acknowledged.is_empty();
            ensure!(
                may_be_gone,
                "it is gone, and {} records were told",
                self.acknowledged.len()
            );
            self.fate = ThreadFate::Gone;
            return Ok(false);
        }
        ensure!(self.fate != ThreadFate::Gone, "it was deleted and is there");
        self.fate = ThreadFate::Lives;
        let records = read_all(store, id).await?;
        self.compare(&records)?;
        // Records that were found without an acknowledgement must stay from now on.
        self.acknowledged = records.iter().map(|it| (it.seq, Mark::of(it))).collect();
        self.blobs(store, id).await?;
        views(store, id, &records, summary).await?;
        Ok(true)
    }

    fn compare(&self, records: &[Record]) -> Result<()> {
        let stored: BTreeMap<Seq, Mark> = records.iter().map(|it| (it.seq, Mark::of(it))).collect();
        let mut settled: BTreeMap<&str, Seq> = BTreeMap::new();
        for mark in stored.values() {
            if let Some(item) = &mark.settles {
                settled.insert(item, mark.seq);
            }
        }
        for (seq, expected) in &self.acknowledged {
            let actual = stored.get(seq);
            if actual.is_some_and(|actual| actual.hash == expected.hash) {
                continue;
            }
            ensure!(actual.is_none(), "record {seq} is not what was told");
            let item = expected.piece_of.as_deref();
            let at = item.and_then(|item| settled.get(item));
            let allowed = at.is_some_and(|at| at > seq);
            ensure!(allowed, "record {seq} was told and is gone");
        }
        let last = self
            .acknowledged
            .keys()
            .next_back()
            .copied()
            .unwrap_or(Seq::ZERO);
        for seq in stored.keys().filter(|seq| **seq < last) {
            let was_acknowledged = self.acknowledged.contains_key(seq);
            ensure!(
                was_acknowledged,
                "record {seq} was never told, and {last} was"
            );
        }
        Ok(())
    }

    async fn blobs(&self, store: &LocalJournal, id: ThreadId) -> Result<()> {
        let hashes: BTreeSet<&String> = self
            .acknowledged
            .values()
            .flat_map(|it| &it.blobs)
            .collect();
        for hash in hashes {
            blob(store, id, hash).await?;
        }
        Ok(())
    }
}

/// Returns all records of a thread, page by page.
pub async fn read_all(store: &LocalJournal, id: ThreadId) -> Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let after = records.last().map_or(Seq::ZERO, |record| record.seq);
        let page = store.read(id, after, 1 << 20).await?;
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page);
    }
}

/// Returns every thread that a list shows.
pub async fn listed(store: &LocalJournal) -> Result<BTreeMap<ThreadId, Summary>> {
    let mut all = BTreeMap::new();
    for archived in [false, true] {
        let mut query = ListQuery {
            archived,
            limit: 100,
            ..ListQuery::default()
        };
        loop {
            let page = store.list(query.clone()).await?;
            all.extend(page.entries.into_iter().map(|it| (it.thread, it)));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
    }
    Ok(all)
}

/// Checks that derived data agrees with the records: bases, the list, the pages.
async fn views(
    store: &LocalJournal,
    id: ThreadId,
    records: &[Record],
    summary: Option<&Summary>,
) -> Result<()> {
    let mut whole = Thread::new();
    records.iter().for_each(|record| whole.apply(record));
    let shortcut = fold(store, id, None).await?;
    if whole != shortcut {
        bail!("the newest base and what follows is not the whole");
    }
    let expected = Summary::of(&whole).filter(|it| it.thread == id);
    ensure!(
        summary == expected.as_ref(),
        "the list shows {summary:?} instead of {expected:?}"
    );
    let query = PageQuery {
        limit: 1000,
        ..PageQuery::default()
    };
    let turns = store.turns(id, query.clone()).await?;
    let count = turns.entries.len() as u64;
    ensure!(
        turns.next.is_some() || count == whole.turns(),
        "pages show {count} turns instead of {}",
        whole.turns()
    );
    store.items(id, None, query).await.context("its items")?;
    Ok(())
}

/// Runs the journal's own verification of everything: the file, every chain, every blob, every
/// projection.
pub fn verify(home: &std::path::Path) -> Result<()> {
    let Some(archive) = Archive::open(home)? else {
        bail!("there is no journal");
    };
    let file = archive.check_file()?;
    ensure!(file.is_empty(), "SQLite says: {}", file.join("; "));
    for thread in archive.threads()? {
        let mut result = archive.verify(thread);
        if result
            .as_ref()
            .is_ok_and(|report| !report.damage.is_empty())
        {
            // Another process may have begun to delete it, and files are deleted before the last
            // row.
            result = archive.verify(thread);
        }
        let report = match result {
            Err(ReadError::NotFound) => continue,
            report => report.with_context(|| format!("verifying thread {thread}"))?,
        };
        let damage = report.damage.first();
        ensure!(
            damage.is_none(),
            "verify says of thread {thread}: {damage:?}"
        );
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
