//! What can still be read of a journal whose file SQLite cannot make sense of.
//!
//! Every page is searched for rows. A row that looks like an event is one only if its hash follows from
//! the event before it, all the way from the thread's beginning; so nothing false gets through, whatever
//! the damage made of the file.

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

/// A journal whose pages were searched.
#[derive(Debug)]
pub(super) struct RawScan {
    pages: RawPages,
    files: BlobFiles,
    rows: RawRows,
}

/// How far a thread could be read.
#[derive(Debug)]
pub(super) struct WalkResult {
    /// Why it does not go further, if it should.
    pub(super) damage: Option<ReadError>,
    /// Whether it is known where the thread ends.
    pub(super) end_known: bool,
}

impl RawScan {
    /// Searches a journal's pages.
    pub(super) fn search(folder: &Path) -> io::Result<Self> {
        let disk = RawPages::open(folder)?;
        let mut rows = RawRows::default();
        disk.scan(&mut |place, cell| rows.sort(place, &cell));
        for parts in rows.parts.values_mut() {
            parts.sort_unstable();
            parts.dedup();
        }
        let mut wreck = Self {
            pages: disk,
            files: BlobFiles::new(folder),
            rows,
        };
        wreck.identify_threads();
        Ok(wreck)
    }

    /// Threads whose row is lost, or is not what was written: their records say who they are.
    fn identify_threads(&mut self) {
        let rows = &self.rows;
        let named: HashSet<i64> = rows.threads.values().map(|row| row.number).collect();
        let mut numbers: BTreeSet<i64> = rows.parts.keys().copied().collect();
        let mut at = 0;
        while let Some((first, _)) = rows.events.range(at..).next() {
            let number = rowid::number(*first);
            numbers.insert(number);
            at = rowid::last(number).saturating_add(1);
        }
        let origins: HashSet<Link> = rows.threads.values().map(|row| row.origin).collect();
        let unnamed = numbers.iter().filter(|it| !named.contains(it));
        let found: Vec<(ThreadId, ThreadRow)> = unnamed
            .filter_map(|number| self.name(*number, &origins))
            .collect();
        for (thread, row) in found {
            self.rows.threads.entry(thread).or_insert(row);
        }
    }

    /// The thread of a number, by its records, and where its chain begins. One that was forked begins as
    /// some other does.
    fn name(&self, number: i64, origins: &HashSet<Link>) -> Option<(ThreadId, ThreadRow)> {
        let (seq, places) = self.events_of(number).next()?;
        let hints = self.rows.hints.get(&number);
        let forked = hints.is_some() || self.rows.parts.contains_key(&number);
        let known = origins.iter().filter(|_| forked).copied();
        for event in places.iter().filter_map(|it| self.event(*it, seq)) {
            let started = match event.open(&self.files) {
                Ok(Event::ThreadStarted(it)) => Some(it.thread),
                _ => None,
            };
            let own = started.map(chain::origin);
            let hinted = hints.into_iter().flatten().copied();
            let mut origins = own.into_iter().chain(hinted).chain(known.clone());
            let Some(origin) = origins.find(|it| event.follows(it)) else {
                continue;
            };
            let thread = self.last_name(number, origin)?;
            let row = ThreadRow {
                number,
                origin,
                ..ThreadRow::new(thread)
            };
            return Some((thread, row));
        }
        None
    }

    /// Who the records of a number say that they belong to.
    fn last_name(&self, number: i64, origin: Link) -> Option<ThreadId> {
        let mut link = origin;
        let mut name = None;
        for (seq, places) in self.events_of(number) {
            let mut events = places.iter().filter_map(|it| self.event(*it, seq));
            let Some(event) = events.find(|event| event.follows(&link)) else {
                continue;
            };
            link = event.link;
            match event.open(&self.files) {
                Ok(Event::ThreadStarted(it)) => name = Some(it.thread),
                Ok(Event::Forked(it)) => name = Some(it.thread),
                _ => {}
            }
        }
        name
    }

    /// Every thread of which something was found.
    pub(super) fn threads(&self) -> Vec<ThreadId> {
        let kept = self.rows.threads.iter().filter(|(_, row)| !row.deleting);
        let mut threads: Vec<(i64, ThreadId)> = kept.map(|(id, row)| (row.number, *id)).collect();
        threads.sort_unstable();
        threads.into_iter().map(|(_, id)| id).collect()
    }

    /// The end of a thread as its row has it; zero if the row is lost.
    pub(super) fn head(&self, thread: ThreadId) -> Seq {
        self.rows
            .threads
            .get(&thread)
            .map_or(Seq::ZERO, |row| row.head)
    }

    /// Hands over the sound records of a thread after a number, in order.
    pub(super) fn walk<E>(
        &self,
        thread: ThreadId,
        after: Seq,
        take: &mut dyn FnMut(Record) -> Result<(), E>,
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
        for (seq, places) in self.events_of(row.number) {
            let mut events = places.iter().filter_map(|it| self.event(*it, seq));
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
                    take(delta)?;
                }
            }
            if seq > after {
                take(Record {
                    seq,
                    at: event.at,
                    body: body.into(),
                })?;
            }
            last = seq;
        }
        let end_known = row.head != Seq::ZERO;
        if last == row.head || (!end_known && damage.is_none()) {
            // What did not follow was no part of the thread.
            damage = None;
            let newest = after.max(last);
            for delta in deltas.filter(|delta| delta.seq > newest) {
                take(delta)?;
            }
        } else if damage.is_none() {
            let what = format!("the journal should go on to record {}", row.head);
            damage = Some(read::corrupt(last.next(), what));
        }
        Ok(WalkResult { damage, end_known })
    }

    /// The rows that may be a thread's events, in order.
    fn events_of(&self, number: i64) -> impl Iterator<Item = (Seq, &[RowLocation])> {
        let mut ranges = Vec::new();
        let mut first = Seq::ZERO;
        for (upto, taken) in self.rows.parts.get(&number).into_iter().flatten() {
            ranges.push((key(*taken, first), key(*taken, *upto)));
            first = upto.next();
        }
        ranges.push((key(number, first), rowid::last(number)));
        let ranges = ranges.into_iter().filter(|(first, last)| first <= last);
        ranges.flat_map(|(first, last)| {
            let rows = self.rows.events.range(first..=last);
            rows.map(|(at, places)| (rowid::seq(*at), places.as_slice()))
        })
    }

    /// The deltas of a thread that bear their checksum, in order.
    fn sound_deltas(&self, thread: ThreadId, number: i64) -> impl Iterator<Item = Record> {
        let rows = self
            .rows
            .deltas
            .range(rowid::first(number)..=rowid::last(number));
        rows.filter_map(move |(at, places)| {
            let mut places = places.iter();
            places.find_map(|it| self.delta(thread, *it, rowid::seq(*at)))
        })
    }

    fn event(&self, place: RowLocation, seq: Seq) -> Option<RawEvent> {
        let values = self.pages.values(place)?;
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

    fn delta(&self, thread: ThreadId, place: RowLocation, seq: Seq) -> Option<Record> {
        let values = self.pages.values(place)?;
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
                let sound = chain::sum(thread, seq, at, &delta).as_slice() == sum;
                let body = RecordBody::Delta(delta);
                sound.then_some(Record { seq, at, body })
            }
            _ => None,
        }
    }
}

/// A row that looks like an event.
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
        records::decode(&json).map_err(newer)
    }
}
