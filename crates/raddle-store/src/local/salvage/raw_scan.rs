//! Reads a journal whose file SQLite cannot read.
//!
//! Every page is searched for rows. A row that looks like an event is one only if its hash follows
//! from the previous event, all the way from the thread's beginning. So no false record gets
//! through, whatever the damage.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;

use raddle_core::ports::ReadError;
use raddle_core::{Delta, Event, Record, RecordBody, Seq, ThreadId, Timestamp};

use super::super::chain::{self, Link};
use super::super::fence::ThreadRow;
use super::super::files::BlobFiles;
use super::super::rowid::{self, key};
use super::super::{read, row_codec};
use super::page::ColumnValue;
use super::raw_pages::{RawPages, RowLocation};
use super::rows::RawRows;
use crate::records;

/// A journal whose pages were scanned.
#[derive(Debug)]
pub(super) struct RawScan {
    pages: RawPages,
    files: BlobFiles,
    rows: RawRows,
}

/// Result of reading a thread.
#[derive(Debug)]
pub(super) struct WalkResult {
    /// Reason why the walk stopped early, if it did.
    pub(super) damage: Option<ReadError>,
    /// Whether the end of the thread is known.
    pub(super) end_known: bool,
}

impl RawScan {
    /// Scans a journal's pages.
    pub(super) fn search(folder: &Path) -> io::Result<Self> {
        let pages = RawPages::open(folder)?;
        let mut rows = RawRows::default();
        pages.scan(&mut |location, cell| rows.add(location, &cell));
        for parts in rows.parts.values_mut() {
            parts.sort_unstable();
            parts.dedup();
        }
        let mut scan = Self {
            pages,
            files: BlobFiles::new(folder),
            rows,
        };
        scan.identify_threads();
        Ok(scan)
    }

    /// Identifies threads whose row is lost or damaged by their records.
    fn identify_threads(&mut self) {
        let rows = &self.rows;
        let identified: HashSet<i64> = rows.threads.values().map(|row| row.number).collect();
        let mut numbers: BTreeSet<i64> = rows.parts.keys().copied().collect();
        let mut at = 0;
        while let Some((first, _)) = rows.events.range(at..).next() {
            let number = rowid::number(*first);
            numbers.insert(number);
            at = rowid::last(number).saturating_add(1);
        }
        let origins: HashSet<Link> = rows.threads.values().map(|row| row.origin).collect();
        let unidentified = numbers.iter().filter(|it| !identified.contains(it));
        let recovered: Vec<(ThreadId, ThreadRow)> = unidentified
            .filter_map(|number| self.identify(*number, &origins))
            .collect();
        for (thread, row) in recovered {
            self.rows.threads.entry(thread).or_insert(row);
        }
    }

    /// Returns the thread of a number, by its records, and where its chain begins. The chain of a
    /// fork begins like that of another thread.
    fn identify(&self, number: i64, origins: &HashSet<Link>) -> Option<(ThreadId, ThreadRow)> {
        let (seq, locations) = self.events_of(number).next()?;
        let hints = self.rows.hints.get(&number);
        let forked = hints.is_some() || self.rows.parts.contains_key(&number);
        let known_origins = origins.iter().filter(|_| forked).copied();
        for event in locations.iter().filter_map(|it| self.event(*it, seq)) {
            let started = match event.open(&self.files) {
                Ok(Event::ThreadStarted(it)) => Some(it.thread),
                _ => None,
            };
            let own = started.map(chain::origin);
            let hinted = hints.into_iter().flatten().copied();
            let mut origins = own.into_iter().chain(hinted).chain(known_origins.clone());
            let Some(origin) = origins.find(|it| event.follows(it)) else {
                continue;
            };
            let thread = self.last_thread_id(number, origin)?;
            let row = ThreadRow {
                number,
                origin,
                ..ThreadRow::new(thread)
            };
            return Some((thread, row));
        }
        None
    }

    /// Returns the thread id that the records of a number name last.
    fn last_thread_id(&self, number: i64, origin: Link) -> Option<ThreadId> {
        let mut link = origin;
        let mut thread = None;
        for (seq, locations) in self.events_of(number) {
            let mut events = locations.iter().filter_map(|it| self.event(*it, seq));
            let Some(event) = events.find(|event| event.follows(&link)) else {
                continue;
            };
            link = event.link;
            match event.open(&self.files) {
                Ok(Event::ThreadStarted(it)) => thread = Some(it.thread),
                Ok(Event::Forked(it)) => thread = Some(it.thread),
                _ => {}
            }
        }
        thread
    }

    /// Returns every thread of which at least a part was found.
    pub(super) fn threads(&self) -> Vec<ThreadId> {
        let live = self.rows.threads.iter().filter(|(_, row)| !row.deleting);
        let mut threads: Vec<(i64, ThreadId)> = live.map(|(id, row)| (row.number, *id)).collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns the head of a thread from its row, or zero if the row is lost.
    pub(super) fn head(&self, thread: ThreadId) -> Seq {
        self.rows
            .threads
            .get(&thread)
            .map_or(Seq::ZERO, |row| row.head)
    }

    /// Passes the intact records of a thread after a number to the callback, in order.
    pub(super) fn walk<E>(
        &self,
        thread: ThreadId,
        after: Seq,
        emit: &mut dyn FnMut(Record) -> Result<(), E>,
    ) -> Result<WalkResult, E> {
        let Some(row) = self.rows.threads.get(&thread).filter(|row| !row.deleting) else {
            return Ok(WalkResult {
                damage: Some(ReadError::NotFound),
                end_known: false,
            });
        };
        let mut link = row.origin;
        let mut last = Seq::ZERO;
        let mut damage = None;
        let mut deltas = self.sound_deltas(thread, row.number).peekable();
        for (seq, locations) in self.events_of(row.number) {
            let mut events = locations.iter().filter_map(|it| self.event(*it, seq));
            let Some(event) = events.find(|event| event.follows(&link)) else {
                let what = "its hash does not follow from the record before it";
                damage.get_or_insert(read::corrupt(seq, what.to_owned()));
                continue;
            };
            let body = match event.open(&self.files) {
                Ok(body) => body,
                Err(error) => {
                    damage = Some(error);
                    break;
                }
            };
            link = event.link;
            while let Some(delta) = deltas.next_if(|delta| delta.seq < seq) {
                if delta.seq > after {
                    emit(delta)?;
                }
            }
            if seq > after {
                emit(Record {
                    seq,
                    at: event.at,
                    body: body.into(),
                })?;
            }
            last = seq;
        }
        let end_known = row.head != Seq::ZERO;
        if last == row.head || (!end_known && damage.is_none()) {
            // Rows that did not follow are not part of the thread.
            damage = None;
            let newest = after.max(last);
            for delta in deltas.filter(|delta| delta.seq > newest) {
                emit(delta)?;
            }
        } else if damage.is_none() {
            let what = format!("the journal should go on to record {}", row.head);
            damage = Some(read::corrupt(last.next(), what));
        }
        Ok(WalkResult { damage, end_known })
    }

    /// Returns the rows that may be a thread's events, in order.
    fn events_of(&self, number: i64) -> impl Iterator<Item = (Seq, &[RowLocation])> {
        let mut ranges = Vec::new();
        let mut first = Seq::ZERO;
        for (upto, source) in self.rows.parts.get(&number).into_iter().flatten() {
            ranges.push((key(*source, first), key(*source, *upto)));
            first = upto.next();
        }
        ranges.push((key(number, first), rowid::last(number)));
        let ranges = ranges.into_iter().filter(|(first, last)| first <= last);
        ranges.flat_map(|(first, last)| {
            let rows = self.rows.events.range(first..=last);
            rows.map(|(at, locations)| (rowid::seq(*at), locations.as_slice()))
        })
    }

    /// Returns the deltas of a thread with a valid checksum, in order.
    fn sound_deltas(&self, thread: ThreadId, number: i64) -> impl Iterator<Item = Record> {
        let rows = self
            .rows
            .deltas
            .range(rowid::first(number)..=rowid::last(number));
        rows.filter_map(move |(at, locations)| {
            let mut locations = locations.iter();
            locations.find_map(|it| self.delta(thread, *it, rowid::seq(*at)))
        })
    }

    fn event(&self, location: RowLocation, seq: Seq) -> Option<RawEvent> {
        let values = self.pages.values(location)?;
        match <[ColumnValue; 5]>::try_from(values).ok()? {
            [
                _,
                ColumnValue::Integer(time),
                ColumnValue::Integer(form),
                ColumnValue::Bytes(link),
                ColumnValue::Bytes(body),
            ] => Some(RawEvent {
                seq,
                at: Timestamp(time),
                form,
                link: link.try_into().ok()?,
                body,
            }),
            _ => None,
        }
    }

    fn delta(&self, thread: ThreadId, location: RowLocation, seq: Seq) -> Option<Record> {
        let values = self.pages.values(location)?;
        match <[ColumnValue; 7]>::try_from(values).ok()? {
            [
                _,
                ColumnValue::Integer(time),
                ColumnValue::Text(item),
                ColumnValue::Integer(part),
                ColumnValue::Integer(offset),
                ColumnValue::Bytes(sum),
                ColumnValue::Text(text),
            ] => {
                let delta = Delta {
                    item: item.as_str().into(),
                    part: chain::part_of(part)?,
                    offset: offset.unsigned_abs(),
                    text,
                };
                let at = Timestamp(time);
                let sound = chain::sum_of_delta(thread, seq, at, &delta).as_slice() == sum;
                let body = RecordBody::Delta(delta);
                sound.then_some(Record { seq, at, body })
            }
            _ => None,
        }
    }
}

/// Row that looks like an event.
struct RawEvent {
    seq: Seq,
    at: Timestamp,
    form: i64,
    link: Link,
    body: Vec<u8>,
}

impl RawEvent {
    fn follows(&self, before: &Link) -> bool {
        chain::link(before, self.seq, self.at, self.form, &self.body) == self.link
    }

    fn open(&self, files: &BlobFiles) -> Result<Event, ReadError> {
        let seq = self.seq;
        let newer = |what: String| ReadError::Newer(format!("record {seq}: {what}"));
        let json = row_codec::open(self.form, &self.body, files).map_err(|error| match error {
            row_codec::BodyError::Newer => newer(format!("form {}", self.form)),
            row_codec::BodyError::Damaged(what) => read::corrupt(seq, what),
            row_codec::BodyError::Unavailable(what) => ReadError::Unavailable(what),
        })?;
        records::decode(&json).map_err(|error| newer(error.to_string()))
    }
}
