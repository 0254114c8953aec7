//! Stored data, read before anything is damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use raddle_core::ports::{
    Blobs, ItemEntry, Journal, PageQuery, Pages, ReadError, Summary, TurnEntry,
};
use raddle_core::{Class, Event, Record, RecordBody, Seq, ThreadId, TurnId};
use raddle_store::{Archive, LocalJournal, MemoryJournal, Options};

use crate::ledger::{blobs_of, listed, read_all};

/// Everything that the intact journal serves.
pub struct GroundTruth {
    /// Records of every thread.
    pub threads: BTreeMap<ThreadId, Vec<Record>>,
    /// Lists and pages of every thread.
    views: BTreeMap<ThreadId, Views>,
    /// Blobs that the records refer to.
    blobs: Vec<Vec<u8>>,
}

impl GroundTruth {
    /// Reads a copy of a home, so that the home stays unchanged.
    pub async fn of(home: &Path, scratch: &Path) -> Result<Self> {
        let copy_path = scratch.join("truth");
        copy(home, &copy_path)?;
        let store = LocalJournal::open(&Options {
            folder: copy_path.clone(),
        })?;
        let archive = Archive::open(&copy_path)?.context("there is a journal")?;
        let mut threads = BTreeMap::new();
        let mut blobs = Vec::new();
        for id in archive.threads()? {
            let records = read_all(&store, id).await?;
            blobs.extend(blobs_of(&store, id, &records).await?);
            threads.insert(id, records);
        }
        let mut truth = Self {
            threads,
            views: BTreeMap::new(),
            blobs,
        };
        let lists = listed(&store).await?;
        for (id, records) in &truth.threads {
            let views = Views::of(&store, *id, lists.get(id)).await?;
            let expected = Views::expected(*id, records, &truth.blobs).await?;
            truth.views.insert(*id, expected.clone());
            ensure!(
                views == expected,
                "what is not damaged serves what is not so"
            );
        }
        drop(store);
        fs::remove_dir_all(copy_path)?;
        Ok(truth)
    }

    /// Returns the lists and pages that a thread with these records should have.
    pub async fn views(&self, id: ThreadId, records: &[Record]) -> Result<Views> {
        match self.views.get(&id) {
            Some(views) if self.threads[&id] == records => Ok(views.clone()),
            _ => Views::expected(id, records, &self.blobs).await,
        }
    }

    /// Returns the thread from which this one was forked, directly or not; itself if it is no fork.
    pub fn family(&self, id: ThreadId) -> ThreadId {
        let mut ancestor = id;
        for record in self.threads.get(&id).into_iter().flatten().rev() {
            if let RecordBody::Event(event) = &record.body
                && let Event::Forked(it) = &**event
                && it.thread == ancestor
            {
                ancestor = it.from;
            }
        }
        ancestor
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.threads.values().map(|it| it.len() as u64).sum()
    }
}

/// Lists and pages of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Views {
    summary: Option<Summary>,
    /// The oldest first, and the newest first.
    turns: Vec<Vec<TurnEntry>>,
    items: Vec<Vec<ItemEntry>>,
    /// Items of each turn.
    by_turn: Vec<Vec<ItemEntry>>,
}

impl Views {
    /// Returns the same without a list entry.
    pub fn unlisted(&self) -> Self {
        Self {
            summary: None,
            ..self.clone()
        }
    }

    /// Reads the views from a journal.
    pub async fn of(
        pages: &dyn Pages,
        id: ThreadId,
        summary: Option<&Summary>,
    ) -> Result<Self, ReadError> {
        let mut views = Self {
            summary: summary.cloned(),
            turns: Vec::new(),
            items: Vec::new(),
            by_turn: Vec::new(),
        };
        for newest_first in [false, true] {
            views.turns.push(turns(pages, id, newest_first).await?);
            views
                .items
                .push(items(pages, id, None, newest_first).await?);
        }
        for entry in &views.turns[0] {
            let of_turn = items(pages, id, Some(&entry.turn), false);
            views.by_turn.push(of_turn.await?);
        }
        Ok(views)
    }

    /// Derives the views from the records, by the in-memory journal.
    async fn expected(id: ThreadId, records: &[Record], blobs: &[Vec<u8>]) -> Result<Self> {
        let memory = MemoryJournal::new();
        for bytes in blobs {
            memory.put(id, bytes.clone(), String::new()).await?;
        }
        memory.append(id, Seq::ZERO, records, Class::Power).await?;
        let mut thread = raddle_core::Thread::new();
        records.iter().for_each(|record| thread.apply(record));
        let summary = Summary::of(&thread).filter(|it| it.thread == id);
        Ok(Self::of(&memory, id, summary.as_ref()).await?)
    }
}

async fn turns(
    pages: &dyn Pages,
    id: ThreadId,
    newest_first: bool,
) -> Result<Vec<TurnEntry>, ReadError> {
    let mut query = query(newest_first);
    let mut turns = Vec::new();
    loop {
        let page = pages.turns(id, query.clone()).await?;
        turns.extend(page.entries);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(turns);
        }
    }
}

async fn items(
    pages: &dyn Pages,
    id: ThreadId,
    turn: Option<&TurnId>,
    newest_first: bool,
) -> Result<Vec<ItemEntry>, ReadError> {
    let mut query = query(newest_first);
    let mut items = Vec::new();
    loop {
        let page = pages.items(id, turn.cloned(), query.clone()).await?;
        items.extend(page.entries);
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(items);
        }
    }
}

/// Returns a query for pages so short that there is more than one.
fn query(newest_first: bool) -> PageQuery {
    PageQuery {
        limit: 7,
        newest_first,
        ..PageQuery::default()
    }
}

/// Copies a home as a crash would leave it: without the shared memory of live processes. Files
/// beside the database are hard-linked, because they are never changed in place.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let target = to.join(&name);
        let name = name.to_string_lossy();
        if entry.metadata()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if name.ends_with("-shm") {
            continue;
        } else if name.contains(".sqlite") {
            fs::copy(entry.path(), target)?;
        } else {
            fs::hard_link(entry.path(), target)?;
        }
    }
    Ok(())
}
