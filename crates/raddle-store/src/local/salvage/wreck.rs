//! What can still be read of a journal whose file SQLite cannot make sense of.
//!
//! Every page is searched for rows. A row that looks like an event is one only if its hash follows from
//! the event before it, all the way from the thread's beginning; so nothing false gets through, whatever
//! the damage made of the file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use raddle_core::ports::ReadError;
use raddle_core::{Body, Delta, Event, Record, Seq, ThreadId, Timestamp};

use super::super::chain::{self, Link};
use super::super::files::Files;
use super::super::key::{self, key};
use super::super::{form, read};
use super::disk::{Disk, Place};
use super::page::{Cell, Value, is_integer};
use crate::records;

/// The types of columns as the file format counts them: nothing, sixteen bytes, eight bytes.
const NULL: u64 = 0;
const LINK: u64 = 12 + 2 * 16;
const SUM: u64 = 12 + 2 * 8;

/// A journal whose pages were searched.
#[derive(Debug)]
pub(super) struct Wreck {
    disk: Disk,
    files: Files,
    rows: Rows,
}

/// What was found in the pages, and where. Bodies stay where they are.
#[derive(Debug, Default)]
struct Rows {
    threads: HashMap<ThreadId, Row>,
    /// For each number of a fork, what it took over: up to which record, and of which number.
    parts: BTreeMap<i64, Vec<(Seq, i64)>>,
    events: BTreeMap<i64, Vec<Place>>,
    deltas: BTreeMap<i64, Vec<Place>>,
}

/// A thread's row.
#[derive(Clone, Copy, Debug)]
struct Row {
    number: i64,
    head: Seq,
    going: bool,
    origin: Link,
}

/// How far a thread could be read.
#[derive(Debug)]
pub(super) struct Walked {
    /// Why it does not go further, if it should.
    pub(super) damage: Option<ReadError>,
    /// Whether it is known where the thread ends.
    pub(super) end_known: bool,
}

impl Rows {
    /// Puts a row where rows of its shape go. What has none of these shapes is of no use here.
    fn sort(&mut self, place: Place, cell: &Cell) {
        let integers = |range: &[u64]| range.iter().all(|kind| is_integer(*kind));
        match (cell.rowid, cell.types.as_slice()) {
            (Some(at), [NULL, time, form, LINK, _]) if integers(&[*time, *form]) => {
                self.events.entry(at).or_default().push(place);
            }
            (Some(at), [NULL, time, _, part, offset, SUM, _])
                if integers(&[*time, *part, *offset]) =>
            {
                self.deltas.entry(at).or_default().push(place);
            }
            (Some(number), [NULL, LINK, head, going, NULL | LINK])
                if integers(&[*head, *going]) =>
            {
                // Rows come with the newest form of their page first.
                if let Some((thread, row)) = thread_row(cell, number) {
                    self.threads.entry(thread).or_insert(row);
                }
            }
            (None, [number, upto, taken, SUM]) if integers(&[*number, *upto, *taken]) => {
                if let Some(
                    [
                        Value::Integer(number),
                        Value::Integer(upto),
                        Value::Integer(taken),
                        Value::Bytes(sum),
                    ],
                ) = cell.values(&cell.local).as_deref()
                {
                    let upto = Seq(upto.unsigned_abs());
                    if chain::sum_of_part(*number, upto, *taken).as_slice() == sum {
                        self.parts.entry(*number).or_default().push((upto, *taken));
                    }
                }
            }
            _ => {}
        }
    }
}

impl Wreck {
    /// Searches a journal's pages.
    pub(super) fn search(folder: &Path) -> io::Result<Self> {
        let disk = Disk::open(folder)?;
        let mut rows = Rows::default();
        disk.scan(&mut |place, cell| rows.sort(place, &cell));
        for parts in rows.parts.values_mut() {
            parts.sort_unstable();
            parts.dedup();
        }
        let mut wreck = Self {
            disk,
            files: Files::new(folder),
            rows,
        };
        wreck.name_the_unnamed();
        Ok(wreck)
    }

    /// Threads whose row is lost: their first event says who they are.
    fn name_the_unnamed(&mut self) {
        let mut named: HashSet<i64> = self.rows.threads.values().map(|row| row.number).collect();
        let mut at = 0;
        while let Some((first, places)) = self.rows.events.range(at..).next() {
            let (first, number) = (*first, first >> key::SEQ_BITS);
            at = key::last(number).saturating_add(1);
            if !named.insert(number) {
                continue;
            }
            let mut events = places
                .iter()
                .filter_map(|it| self.event(*it, key::seq(first)));
            let started = events.find_map(|event| match event.open(&self.files) {
                Ok(Event::ThreadStarted(it)) if event.follows(&chain::origin(it.thread)) => {
                    Some(it.thread)
                }
                _ => None,
            });
            drop(events);
            let Some(thread) = started else { continue };
            self.rows.threads.entry(thread).or_insert(Row {
                number,
                head: Seq::ZERO,
                going: false,
                origin: chain::origin(thread),
            });
        }
    }

    /// Every thread of which something was found.
    pub(super) fn threads(&self) -> Vec<ThreadId> {
        let kept = self.rows.threads.iter().filter(|(_, row)| !row.going);
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
    ) -> Result<Walked, E> {
        let Some(row) = self.rows.threads.get(&thread).filter(|row| !row.going) else {
            return Ok(Walked {
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
        Ok(Walked { damage, end_known })
    }

    /// The rows that may be a thread's events, in order.
    fn events_of(&self, number: i64) -> impl Iterator<Item = (Seq, &[Place])> {
        let mut ranges = Vec::new();
        let mut first = Seq::ZERO;
        for (upto, taken) in self.rows.parts.get(&number).into_iter().flatten() {
            ranges.push((key(*taken, first), key(*taken, *upto)));
            first = upto.next();
        }
        ranges.push((key(number, first), key::last(number)));
        let ranges = ranges.into_iter().filter(|(first, last)| first <= last);
        ranges.flat_map(|(first, last)| {
            let rows = self.rows.events.range(first..=last);
            rows.map(|(at, places)| (key::seq(*at), places.as_slice()))
        })
    }

    /// The deltas of a thread that bear their checksum, in order.
    fn sound_deltas(&self, thread: ThreadId, number: i64) -> impl Iterator<Item = Record> {
        let rows = self
            .rows
            .deltas
            .range(key::first(number)..=key::last(number));
        rows.filter_map(move |(at, places)| {
            let mut places = places.iter();
            places.find_map(|it| self.delta(thread, *it, key::seq(*at)))
        })
    }

    fn event(&self, place: Place, seq: Seq) -> Option<RawEvent> {
        let values = self.disk.values(place)?;
        match <[Value; 5]>::try_from(values).ok()? {
            [
                _,
                Value::Integer(time),
                Value::Integer(form),
                Value::Bytes(link),
                Value::Bytes(body),
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

    fn delta(&self, thread: ThreadId, place: Place, seq: Seq) -> Option<Record> {
        let values = self.disk.values(place)?;
        match <[Value; 7]>::try_from(values).ok()? {
            [
                _,
                Value::Integer(time),
                Value::Text(item),
                Value::Integer(part),
                Value::Integer(offset),
                Value::Bytes(sum),
                Value::Text(text),
            ] => {
                let delta = Delta {
                    item: item.as_str().into(),
                    part: chain::part_of(part)?,
                    offset: offset.unsigned_abs(),
                    text,
                };
                let at = Timestamp(time);
                let sound = chain::sum(thread, seq, at, &delta).as_slice() == sum;
                let body = Body::Delta(delta);
                sound.then_some(Record { seq, at, body })
            }
            _ => None,
        }
    }
}

fn thread_row(cell: &Cell, number: i64) -> Option<(ThreadId, Row)> {
    let values = cell.values(&cell.local)?;
    let [
        _,
        Value::Bytes(id),
        Value::Integer(head),
        Value::Integer(going),
        origin,
    ] = values.as_slice()
    else {
        return None;
    };
    let id = uuid::Uuid::from_slice(id).ok()?;
    let thread = ThreadId::from(id);
    let origin = match origin {
        Value::Bytes(origin) => origin.as_slice().try_into().ok()?,
        _ => chain::origin(thread),
    };
    let row = Row {
        number,
        head: Seq(head.unsigned_abs()),
        going: *going != 0,
        origin,
    };
    Some((thread, row))
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

    fn open(&self, files: &Files) -> Result<Event, ReadError> {
        let seq = self.seq;
        let newer = |what: String| ReadError::Newer(format!("record {seq}: {what}"));
        let json = form::open(self.form, &self.body, files).map_err(|error| match error {
            form::Unreadable::Newer => newer(format!("form {}", self.form)),
            form::Unreadable::Damaged(what) => read::corrupt(seq, what),
            form::Unreadable::Away(what) => ReadError::Unavailable(what),
        })?;
        records::decode(&json).map_err(newer)
    }
}
