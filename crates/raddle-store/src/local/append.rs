//! One append, inside the writer's transaction.

use std::collections::{BTreeMap, BTreeSet};

use raddle_core::ports::AppendError;
use raddle_core::{Class, Delta, Event, ItemId, Record, RecordBody, Seq, ThreadId};
use rusqlite::{Connection, Error, params};

use super::chain;
use super::fence::{self, as_i64};
use super::files::BlobFiles;
use super::head_cache::{ClosedThread, HeadCache, State};
use super::row_codec::{BodyFile, StoredBody};
use super::rowid::{self, key};
use super::{head, project, save};
use crate::blob::{self, Hash};
use crate::records::are_ascending;
use crate::text::searchable;

/// Maximum number of deltas deleted in one transaction. The rest are deleted later.
pub(super) const DELTAS_MAX: usize = 1000;

/// Limit: text that a caller writes to the journal directly; beyond it, the writer thread writes
/// it.
const SMALL_BYTES_MAX: usize = 8 << 10;

/// An append, prepared by its caller.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) thread: ThreadId,
    pub(super) after: Seq,
    pub(super) class: Class,
    pub(super) records: Vec<Record>,
    /// One for each record; `None` for deltas.
    bodies: Vec<Option<StoredBody>>,
}

/// Result of an append.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppendOutcome {
    /// New head of the thread.
    pub(super) head: Seq,
    /// Whether there were more deltas to delete than one transaction should.
    pub(super) leftovers: bool,
    /// Number of the thread, if searchable text was written.
    pub(super) words: Option<i64>,
}

/// Bodies that are written to files before the append.
pub(super) type BodyFiles = Vec<(Hash, Vec<u8>)>;

impl Append {
    /// Prepares an append. Also returns the bodies that must be in files before it runs.
    pub(super) fn new(
        thread: ThreadId,
        after: Seq,
        records: &[Record],
        class: Class,
    ) -> Result<(Self, BodyFiles), serde_json::Error> {
        let mut body_files = BodyFiles::new();
        let mut bodies = Vec::with_capacity(records.len());
        for record in records {
            let RecordBody::Event(event) = &record.body else {
                bodies.push(None);
                continue;
            };
            let (stored, file) = StoredBody::new(serde_json::to_vec(event)?);
            body_files.extend(file);
            bodies.push(Some(stored));
        }
        let append = Self {
            thread,
            after,
            class,
            records: records.to_vec(),
            bodies,
        };
        Ok((append, body_files))
    }

    /// Returns the approximate number of bytes that this adds to a transaction.
    pub(super) fn bytes(&self) -> usize {
        let records = self.records.iter().zip(&self.bodies);
        let bytes = records.map(|(record, stored)| match (&record.body, stored) {
            (RecordBody::Delta(delta), _) => delta.text.len() + 100,
            (RecordBody::Event(_), Some(stored)) => stored.body.len() + 100,
            (RecordBody::Event(_), None) => 0,
        });
        bytes.sum()
    }

    /// Whether the append is so small that handing it to the writer costs more than writing it:
    /// text only, which starts no background job and need not reach the disk.
    pub(super) fn is_small(&self) -> bool {
        let is_text = |record: &Record| matches!(record.body, RecordBody::Delta(_));
        self.class == Class::Process
            && self.records.iter().all(is_text)
            && self.bytes() <= SMALL_BYTES_MAX
    }

    /// Appends, or returns the rejection. An append is rejected before anything is written or not
    /// at all.
    pub(super) fn run(
        &self,
        transaction: &Connection,
        files: &BlobFiles,
        heads: &mut HeadCache,
    ) -> Result<Result<AppendOutcome, AppendError>, Error> {
        let mut state = match heads.thread(transaction, self.thread)? {
            Ok(state) => state,
            Err(ClosedThread::Deleting) => return Ok(Err(AppendError::Conflict)),
            Err(ClosedThread::Damaged(head)) => {
                return Ok(Err(damaged(&format!("record {head} or after it"))));
            }
            Err(ClosedThread::Quarantined(at)) => return Ok(Err(damaged(&format!("record {at}")))),
        };
        if state.head() != self.after || !are_ascending(self.after, &self.records) {
            return Ok(Err(AppendError::Conflict));
        }
        let Some(last) = self.records.last().map(|record| record.seq) else {
            return Ok(Ok(AppendOutcome {
                head: self.after,
                leftovers: false,
                words: None,
            }));
        };
        if last > rowid::SEQ_MAX {
            let what = "the thread has used all its record numbers; fork it to continue".to_owned();
            return Ok(Err(AppendError::Full(what)));
        }
        if let Err(rejection) = self.find_files(files) {
            return Ok(Err(rejection));
        }
        if !state.begun {
            fence::begin(transaction, self.thread, &mut state.row)?;
            state.begun = true;
        }
        let leftovers = self.write(transaction, files, &mut state)?;
        for hash in self
            .named()
            .filter_map(Result::ok)
            .collect::<BTreeSet<Hash>>()
        {
            save::release_put(transaction, files, &hash)?;
        }
        heads.remember(self.thread, state);
        Ok(Ok(AppendOutcome {
            head: last,
            leftovers,
            words: self.has_words().then_some(state.row.number),
        }))
    }

    fn has_words(&self) -> bool {
        self.records.iter().any(|record| match &record.body {
            RecordBody::Event(event) => searchable(event).is_some(),
            RecordBody::Delta(_) => false,
        })
    }

    /// Returns the hashes of the blobs that the records refer to, or the text of a malformed hash.
    fn named(&self) -> impl Iterator<Item = Result<Hash, &str>> {
        let events = self.records.iter().filter_map(|record| match &record.body {
            RecordBody::Event(event) => Some(event),
            RecordBody::Delta(_) => None,
        });
        let blobs = events.flat_map(|event| blob::named(event));
        blobs.map(|blob| blob::parse(&blob.hash).ok_or(blob.hash.as_str()))
    }

    /// Checks that the files that the records need exist. No file is removed while this transaction
    /// lasts.
    fn find_files(&self, files: &BlobFiles) -> Result<(), AppendError> {
        for blob_name in self.named() {
            let missing = match blob_name {
                Ok(hash) if files.holds(&hash) => continue,
                Ok(hash) => blob::hex(&hash),
                Err(malformed) => format!("{malformed:?}"),
            };
            return Err(blob::missing(&missing));
        }
        let mut body_files = self
            .bodies
            .iter()
            .flatten()
            .filter_map(StoredBody::body_file);
        match body_files.find(|file| !files.holds(&file.hash)) {
            // Deleting another thread removed the same file after this append wrote it. A retry
            // writes it again.
            Some(file) => {
                let what = format!("the file {} vanished", blob::hex(&file.hash));
                Err(AppendError::Unavailable(what))
            }
            None => Ok(()),
        }
    }

    /// Writes the records. Returns whether deltas are left over.
    fn write(
        &self,
        transaction: &Connection,
        files: &BlobFiles,
        state: &mut State,
    ) -> Result<bool, Error> {
        let number = state.row.number;
        let before = state.row.head;
        let had_deltas = state.delta.is_some();
        let settled = self.settled();
        let mut leftovers = false;
        let mut insert = transaction.prepare_cached(
            "INSERT INTO event (at, time, form, chain, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for (record, stored) in self.records.iter().zip(&self.bodies) {
            match (&record.body, stored) {
                (RecordBody::Event(event), Some(stored)) => {
                    let form = stored.form;
                    state.link =
                        chain::link(&state.link, record.seq, record.at, form, &stored.body);
                    let at = key(number, record.seq);
                    insert.execute(params![at, record.at.0, form, state.link, stored.body])?;
                    state.row.head = record.seq;
                    use_blobs(transaction, at, event, stored.body_file())?;
                    if let Some(item) = event.settles().filter(|_| had_deltas) {
                        leftovers |= settle(transaction, number, item, record.seq)?;
                    }
                }
                (RecordBody::Delta(delta), _) => {
                    // A delta that the same append settles later is not worth a row.
                    if settled.get(&delta.item).is_none_or(|at| *at < record.seq) {
                        write_delta(transaction, number, self.thread, record, delta)?;
                        state.delta = Some(record.seq);
                    }
                }
                (RecordBody::Event(_), None) => {}
            }
        }
        if !settled.is_empty() && had_deltas {
            state.delta = head::newest_delta(transaction, self.thread, number)?;
        }
        if state.row.head != before {
            let row = &mut state.row;
            project::follow(transaction, files, row, self.thread, &self.records)?;
            fence::move_fence(transaction, self.thread, before, &state.row)?;
        }
        Ok(leftovers)
    }

    /// Returns the items that this append settles, and at which record.
    fn settled(&self) -> BTreeMap<&ItemId, Seq> {
        let settled = self.records.iter().filter_map(|record| match &record.body {
            RecordBody::Event(event) => event.settles().map(|item| (item, record.seq)),
            RecordBody::Delta(_) => None,
        });
        settled.collect()
    }
}

fn damaged(at: &str) -> AppendError {
    let what = format!("the thread is damaged at {at}; export its intact part");
    AppendError::ReadOnly(what)
}

pub(super) fn write_delta(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    record: &Record,
    delta: &Delta,
) -> Result<(), Error> {
    let sum = chain::sum_of_delta(thread, record.seq, record.at, delta);
    transaction
        .prepare_cached(
            "INSERT INTO delta (at, time, item, part, offset, sum, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            key(number, record.seq),
            record.at.0,
            delta.item.as_str(),
            chain::part(delta.part),
            i64::try_from(delta.offset).unwrap_or(i64::MAX),
            sum,
            delta.text,
        ])?;
    Ok(())
}

/// Deletes the deltas of a settled item, and records a leftover if there are more.
fn settle(
    transaction: &Connection,
    number: i64,
    item: &ItemId,
    before: Seq,
) -> Result<bool, Error> {
    let upto = key(number, before);
    let more = forget(transaction, upto, item.as_str())?;
    if more {
        transaction
            .prepare_cached("INSERT INTO leftover (at, item) VALUES (?1, ?2)")?
            .execute(params![upto, item.as_str()])?;
    }
    Ok(more)
}

/// Deletes some deltas of an item up to a key. Returns whether there may be more.
pub(super) fn forget(transaction: &Connection, upto: i64, item: &str) -> Result<bool, Error> {
    let first = upto - as_i64(rowid::seq(upto));
    let deleted = transaction
        .prepare_cached(
            "DELETE FROM delta WHERE at IN
             (SELECT at FROM delta WHERE at BETWEEN ?1 AND ?2 AND item = ?3 LIMIT ?4)",
        )?
        .execute(params![first, upto, item, DELTAS_MAX as i64])?;
    Ok(deleted == DELTAS_MAX)
}

/// Stores the blobs that a record uses, so that they are deleted with it.
fn use_blobs(
    transaction: &Connection,
    at: i64,
    event: &Event,
    body: Option<BodyFile>,
) -> Result<(), Error> {
    let blobs = blob::named(event);
    let hashes = blobs.iter().filter_map(|it| blob::parse(&it.hash));
    for hash in hashes.chain(body.map(|file| file.hash)) {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO blob_use (hash, at) VALUES (?1, ?2)")?
            .execute(params![hash, at])?;
    }
    Ok(())
}
