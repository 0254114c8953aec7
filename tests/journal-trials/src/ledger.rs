//! What was told, kept apart from the journal, and the journal held against it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use raddle_core::ports::{
    AppendError, Blobs, Journal, ListQuery, PageQuery, Pages, ReadError, Summary,
};
use raddle_core::{Blob, Class, Record, RecordBody, Seq, Thread, ThreadId};
use raddle_store::{Archive, LocalJournal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::live::{AppendListener, fold};
use crate::rng::hash;

/// What a writer says to whoever may kill it, one line each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WriterLine {
    /// The journal is open.
    Ready,
    /// These records are stored.
    Told {
        thread: ThreadId,
        power: bool,
        marks: Vec<Mark>,
    },
    /// An append failed.
    Failed { error: String, power: bool },
    /// A turn that a full disk left open was ended, if that could be stored.
    TurnFailed { stored: bool },
    /// A thread will be deleted now.
    Deleting(ThreadId),
    /// It is gone.
    Deleted(ThreadId),
    /// A thread will be copied now, up to a number, as another.
    Forking {
        from: ThreadId,
        at: Seq,
        to: ThreadId,
    },
    /// The script is over.
    Done,
}

/// A record, as far as it must be known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    seq: Seq,
    hash: u64,
    /// The item that it is a piece of, for a delta.
    piece_of: Option<String>,
    /// The item whose pieces are no longer needed.
    settles: Option<String>,
    /// What it names beside the journal.
    blobs: Vec<String>,
}

impl Mark {
    /// The mark of a record.
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

/// The bytes that records name, by their hash.
pub async fn blobs_of(store: &LocalJournal, records: &[Record]) -> Result<Vec<Vec<u8>>> {
    let marks = records.iter().map(Mark::of);
    let named: BTreeSet<String> = marks.flat_map(|mark| mark.blobs).collect();
    let mut blobs = Vec::new();
    for hash in named {
        blobs.push(blob(store, &hash).await?);
    }
    Ok(blobs)
}

async fn blob(store: &LocalJournal, hash: &str) -> Result<Vec<u8>> {
    let blob = Blob {
        hash: hash.to_owned(),
        bytes: 0,
        media: String::new(),
    };
    let got = store.get(blob).await;
    got.with_context(|| format!("the blob {hash}, which a record names"))
}

/// Every blob has these members, and nothing else has.
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

/// What is known of one thread.
#[derive(Clone, Debug, Default)]
struct Account {
    told: BTreeMap<Seq, Mark>,
    fate: ThreadFate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThreadFate {
    #[default]
    Lives,
    /// Its deletion was begun.
    MayBeGone,
    Gone,
    /// It was to be copied from another, which may not have happened.
    MayBe,
}

/// All that was told.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    threads: BTreeMap<ThreadId, Account>,
    /// How many records were told.
    pub records: u64,
    /// How many of them must survive the power.
    pub power: u64,
    /// How many appends failed.
    pub failures: u64,
    /// How many turns that a full disk left open were ended.
    pub turns_failed: u64,
    /// How many could not be.
    pub turns_left_open: u64,
    /// Whether a sync failed.
    in_doubt: bool,
    /// Appends acknowledged as safe from the loss of power after that.
    pub power_after_doubt: u64,
}

impl AppendListener for Ledger {
    fn stored(&mut self, thread: ThreadId, records: &[Record], class: Class) {
        self.take(WriterLine::Told {
            thread,
            power: class == Class::Power,
            marks: records.iter().map(Mark::of).collect(),
        });
    }

    fn failed(&mut self, error: &AppendError, class: Class) {
        self.take(WriterLine::Failed {
            error: format!("{error:?}"),
            power: class == Class::Power,
        });
    }
}

impl Ledger {
    /// Takes in what a writer said.
    pub fn take(&mut self, line: WriterLine) {
        match line {
            WriterLine::Ready | WriterLine::Done => {}
            WriterLine::Told {
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
                    .told
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
                let told = parent.told.into_iter().filter(|(seq, _)| *seq <= at);
                let account = Account {
                    told: told.collect(),
                    fate: ThreadFate::MayBe,
                };
                self.threads.insert(to, account);
            }
        }
    }

    fn fate(&mut self, thread: ThreadId, fate: ThreadFate) {
        self.threads.entry(thread).or_default().fate = fate;
    }

    /// Holds every thread of the journal against what was told of it. What may be gone is known better
    /// afterwards. Answers with the threads that are there.
    pub async fn check(&mut self, store: &LocalJournal) -> Result<Vec<ThreadId>> {
        let listed = listed(store).await?;
        let mut there = Vec::new();
        for (id, account) in &mut self.threads {
            let check = account.check(store, *id, listed.get(id));
            let lives = check.await.with_context(|| format!("thread {id}"))?;
            if lives {
                there.push(*id);
            }
        }
        Ok(there)
    }
}

impl Account {
    /// Says whether the thread is there.
    async fn check(
        &mut self,
        store: &LocalJournal,
        id: ThreadId,
        summary: Option<&Summary>,
    ) -> Result<bool> {
        let head = store.head(id).await?;
        if head == Seq::ZERO {
            ensure!(summary.is_none(), "a list shows it and it is not there");
            let may = !matches!(self.fate, ThreadFate::Lives) || self.told.is_empty();
            ensure!(may, "it is gone, and {} records were told", self.told.len());
            self.fate = ThreadFate::Gone;
            return Ok(false);
        }
        ensure!(self.fate != ThreadFate::Gone, "it was deleted and is there");
        self.fate = ThreadFate::Lives;
        let records = read_all(store, id).await?;
        self.compare(&records)?;
        // What was found without having been told is there for good.
        self.told = records.iter().map(|it| (it.seq, Mark::of(it))).collect();
        self.blobs(store).await?;
        views(store, id, &records, summary).await?;
        Ok(true)
    }

    fn compare(&self, records: &[Record]) -> Result<()> {
        let found: BTreeMap<Seq, Mark> = records.iter().map(|it| (it.seq, Mark::of(it))).collect();
        let mut settled: BTreeMap<&str, Seq> = BTreeMap::new();
        for mark in found.values() {
            if let Some(item) = &mark.settles {
                settled.insert(item, mark.seq);
            }
        }
        for (seq, told) in &self.told {
            let found = found.get(seq);
            if found.is_some_and(|found| found.hash == told.hash) {
                continue;
            }
            ensure!(found.is_none(), "record {seq} is not what was told");
            let item = told.piece_of.as_deref();
            let at = item.and_then(|item| settled.get(item));
            let allowed = at.is_some_and(|at| at > seq);
            ensure!(allowed, "record {seq} was told and is gone");
        }
        let last = self.told.keys().next_back().copied().unwrap_or(Seq::ZERO);
        for seq in found.keys().filter(|seq| **seq < last) {
            let known = self.told.contains_key(seq);
            ensure!(known, "record {seq} was never told, and {last} was");
        }
        Ok(())
    }

    async fn blobs(&self, store: &LocalJournal) -> Result<()> {
        let named: BTreeSet<&String> = self.told.values().flat_map(|it| &it.blobs).collect();
        for hash in named {
            blob(store, hash).await?;
        }
        Ok(())
    }
}

/// All records of a thread, page by page.
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

/// Every thread that a list shows.
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

/// What is made from the records agrees with them: bases, the list, the pages.
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

/// The journal's own word on everything in it: the file, every chain, every blob, every projection.
pub fn verify(home: &std::path::Path) -> Result<()> {
    let Some(archive) = Archive::open(home)? else {
        bail!("there is no journal");
    };
    let file = archive.check_file()?;
    ensure!(file.is_empty(), "SQLite says: {}", file.join("; "));
    for thread in archive.threads()? {
        let mut found = archive.verify(thread);
        if found.as_ref().is_ok_and(|report| !report.damage.is_empty()) {
            // Another process may have begun to delete it, and files go before the last row does.
            found = archive.verify(thread);
        }
        let report = match found {
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
