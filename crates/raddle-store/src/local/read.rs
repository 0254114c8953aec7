//! Reads records and bases. Data without a valid hash or checksum is never returned.

use raddle_core::ports::ReadError;
use raddle_core::{Base, Delta, Event, Record, RecordBody, Seq, ThreadId, Timestamp};
use rusqlite::{Connection, Error, OptionalExtension, Rows};

use super::chain::{self, Link};
use super::error;
use super::fence;
use super::files::BlobFiles;
use super::row_codec::{self, BodyError};
use super::rowid::{self, key};
use super::segments::{ChainedEvent, Segments};
use crate::records;

/// Approximate weight of a delta without its text.
const DELTA_BYTES: usize = 100;

/// Message for an event that was changed or is out of place.
const UNCHAINED: &str = "its hash does not follow from the record before it";

/// Returns the row of a thread that can be read.
pub(super) fn thread(
    connection: &Connection,
    thread: ThreadId,
) -> Result<Option<fence::ThreadRow>, ReadError> {
    let row = fence::row(connection, thread).map_err(error::open)?;
    Ok(row.filter(|row| !row.deleting))
}

/// Returns the row of a thread, or `NotFound`.
pub(super) fn existing(
    connection: &Connection,
    id: ThreadId,
) -> Result<fence::ThreadRow, ReadError> {
    thread(connection, id)?.ok_or(ReadError::NotFound)
}

/// Returns the records after a number.
pub(super) fn records(
    connection: &Connection,
    files: &BlobFiles,
    id: ThreadId,
    row: &fence::ThreadRow,
    after: Seq,
    bytes_max: usize,
) -> Result<Vec<Record>, ReadError> {
    let fail = |error| error::read(error, after.next());
    let after = after.min(rowid::SEQ_MAX);
    let segments = Segments::of(connection, row).map_err(fail)?;
    let mut last = segments.event_upto(connection, after).map_err(fail)?;
    // The next records are verified against this one, so it must be in place.
    if !follows(connection, &segments, last).map_err(fail)? {
        return Err(corrupt(last.seq, UNCHAINED.to_owned()));
    }
    let mut deltas = connection
        .prepare_cached(
            "SELECT at, time, item, part, offset, sum, text FROM delta
             WHERE at BETWEEN ?1 AND ?2 ORDER BY at",
        )
        .map_err(fail)?;
    let range = [key(row.number, after) + 1, rowid::last(row.number)];
    let mut deltas = Deltas {
        rows: deltas.query(range).map_err(fail)?,
        thread: id,
        last: after,
        next: None,
    };
    deltas.step()?;
    let mut events = connection
        .prepare_cached(
            "SELECT at, time, form, chain, body FROM event WHERE at BETWEEN ?1 AND ?2 ORDER BY at",
        )
        .map_err(fail)?;
    let mut page = RecordPage::new(bytes_max);
    for part in segments.between(after.next(), rowid::SEQ_MAX) {
        let mut rows = events.query(part.keys()).map_err(fail)?;
        loop {
            let fail = |error| error::read(error, last.seq.next());
            let Some(row) = rows.next().map_err(fail)? else {
                break;
            };
            let event = EventRow::read(row).map_err(fail)?;
            while let Some(delta) = deltas.before(event.seq)? {
                if !page.take(delta.1) {
                    return Ok(page.records);
                }
                page.records.push(delta.0);
            }
            if !page.take(event.bytes()) {
                return Ok(page.records);
            }
            page.records.push(event.open(&last.link, files)?);
            last = event.linked();
        }
    }
    // The fence knows where the chain ends; an event that vanished there leaves no other trace.
    if last.seq != row.head {
        let what = format!("the journal should go on to record {}", row.head);
        return Err(corrupt(last.seq.next(), what));
    }
    while let Some((delta, bytes)) = deltas.before(Seq(u64::MAX))? {
        if !page.take(bytes) {
            break;
        }
        page.records.push(delta);
    }
    Ok(page.records)
}

/// A page of records, and its remaining capacity.
struct RecordPage {
    records: Vec<Record>,
    bytes: usize,
    bytes_max: usize,
}

impl RecordPage {
    fn new(bytes_max: usize) -> Self {
        Self {
            records: Vec::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// Whether a record of this weight fits on the page. The first always does.
    fn take(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.records.is_empty() || self.bytes <= self.bytes_max
    }
}

/// Row of an event.
struct EventRow {
    seq: Seq,
    at: Timestamp,
    form: i64,
    link: Link,
    body: Vec<u8>,
}

impl EventRow {
    fn read(row: &rusqlite::Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            seq: rowid::seq(row.get(0)?),
            at: Timestamp(row.get(1)?),
            form: row.get(2)?,
            link: row.get(3)?,
            body: row.get(4)?,
        })
    }

    fn linked(&self) -> ChainedEvent {
        ChainedEvent {
            seq: self.seq,
            link: self.link,
        }
    }

    /// Returns its approximate weight.
    fn bytes(&self) -> usize {
        row_codec::weight(self.form, &self.body)
    }

    fn follows(&self, before: &Link) -> bool {
        chain::link(before, self.seq, self.at, self.form, &self.body) == self.link
    }

    /// Returns the record if its hash follows from the previous one.
    fn open(&self, before: &Link, files: &BlobFiles) -> Result<Record, ReadError> {
        let seq = self.seq;
        if !self.follows(before) {
            return Err(corrupt(seq, UNCHAINED.to_owned()));
        }
        let newer = |what: String| ReadError::Newer(format!("record {seq}: {what}"));
        let json = row_codec::open(self.form, &self.body, files).map_err(|error| match error {
            BodyError::Newer => newer(format!("form {}", self.form)),
            BodyError::Damaged(what) => corrupt(seq, what),
            BodyError::Unavailable(what) => ReadError::Unavailable(what),
        })?;
        // The bytes are intact, so a newer version wrote something that this one does not know.
        let event = records::decode(&json).map_err(|error| newer(error.to_string()))?;
        Ok(Record {
            seq,
            at: self.at,
            body: event.into(),
        })
    }
}

/// An event that was read by itself.
pub(super) struct LoadedEvent {
    pub(super) at: Timestamp,
    /// Approximate weight in bytes.
    pub(super) bytes: usize,
    pub(super) event: Box<Event>,
}

/// Returns one event, verified against the chain.
pub(super) fn event(
    connection: &Connection,
    files: &BlobFiles,
    segments: &Segments,
    at: i64,
) -> Result<LoadedEvent, ReadError> {
    let seq = rowid::seq(at);
    let fail = |error| error::read(error, seq);
    let row = connection
        .prepare_cached("SELECT at, time, form, chain, body FROM event WHERE at = ?1")
        .and_then(|mut statement| statement.query_row([at], EventRow::read).optional())
        .map_err(fail)?;
    let row = row.ok_or_else(|| corrupt(seq, "it is gone".to_owned()))?;
    let upto = Seq(seq.0.saturating_sub(1));
    let before = segments.event_upto(connection, upto).map_err(fail)?;
    match row.open(&before.link, files)?.body {
        RecordBody::Event(event) => Ok(LoadedEvent {
            at: row.at,
            bytes: row.bytes(),
            event,
        }),
        RecordBody::Delta(_) => Err(corrupt(seq, "it is no event".to_owned())),
    }
}

/// Whether an event follows from the previous one; always true of the position before the first
/// event.
pub(super) fn follows(
    connection: &Connection,
    segments: &Segments,
    event: ChainedEvent,
) -> Result<bool, Error> {
    let Some(upto) = event.seq.0.checked_sub(1).map(Seq) else {
        return Ok(true);
    };
    let before = segments.event_upto(connection, upto)?;
    let row = connection
        .prepare_cached("SELECT at, time, form, chain, body FROM event WHERE at = ?1")?
        .query_row([segments.key_of(event.seq)], EventRow::read)?;
    Ok(row.follows(&before.link))
}

/// A thread's deltas in order, each verified against its checksum.
struct Deltas<'a> {
    rows: Rows<'a>,
    thread: ThreadId,
    last: Seq,
    /// Next delta, and its approximate weight.
    next: Option<(Record, usize)>,
}

impl Deltas<'_> {
    /// Returns the next delta if it comes before an event.
    fn before(&mut self, event: Seq) -> Result<Option<(Record, usize)>, ReadError> {
        let Some(next) = self.next.take_if(|(record, _)| record.seq < event) else {
            return Ok(None);
        };
        self.step()?;
        Ok(Some(next))
    }

    fn step(&mut self) -> Result<(), ReadError> {
        let fail = |error| error::read(error, self.last.next());
        let Some(row) = self.rows.next().map_err(fail)? else {
            return Ok(());
        };
        let (record, bytes) = checked_delta(self.thread, row, self.last.next())?;
        self.last = record.seq;
        self.next = Some((record, bytes));
        Ok(())
    }
}

/// Reads a delta's row and verifies its checksum. Also returns its approximate weight.
pub(super) fn checked_delta(
    thread: ThreadId,
    row: &rusqlite::Row<'_>,
    at: Seq,
) -> Result<(Record, usize), ReadError> {
    let (record, sum) = delta(row).map_err(|error| error::read(error, at))?;
    let RecordBody::Delta(delta) = &record.body else {
        return Err(corrupt(record.seq, "it is no delta".to_owned()));
    };
    if chain::sum_of_delta(thread, record.seq, record.at, delta) != sum {
        let what = "its checksum is not that of its text";
        return Err(corrupt(record.seq, what.to_owned()));
    }
    let bytes = delta.text.len() + DELTA_BYTES;
    Ok((record, bytes))
}

fn delta(row: &rusqlite::Row<'_>) -> Result<(Record, [u8; 8]), Error> {
    let part: i64 = row.get(3)?;
    let item: String = row.get(2)?;
    let delta = Delta {
        item: item.as_str().into(),
        part: chain::part_of(part).ok_or(Error::IntegralValueOutOfRange(3, part))?,
        offset: row.get::<_, i64>(4)?.unsigned_abs(),
        text: row.get(6)?,
    };
    let record = Record {
        seq: rowid::seq(row.get(0)?),
        at: Timestamp(row.get(1)?),
        body: RecordBody::Delta(delta),
    };
    Ok((record, row.get(5)?))
}

/// Returns the newest base of a thread whose head is not above a number; `None` if the thread does
/// not exist.
pub(super) fn base(
    connection: &Connection,
    id: ThreadId,
    at: Option<Seq>,
) -> Result<Option<Base>, ReadError> {
    match thread(connection, id)? {
        Some(row) => base_of(connection, &row, at),
        None => Ok(None),
    }
}

/// Returns the newest base of a thread, by its row. A base with a wrong checksum or of another
/// version is skipped, because it is only a shortcut.
pub(super) fn base_of(
    connection: &Connection,
    row: &fence::ThreadRow,
    at: Option<Seq>,
) -> Result<Option<Base>, ReadError> {
    let upto = at.unwrap_or(rowid::SEQ_MAX);
    // A fork may have a separate base for the records that it shares.
    let own = [rowid::first(row.number), key(row.number, upto)];
    let mut newest = base_within(connection, row.number, own).map_err(error::open)?;
    let segments = Segments::of(connection, row).map_err(error::open)?;
    let shared = segments.between(Seq::ZERO, upto).rev();
    for part in shared.filter(|part| part.number != row.number) {
        if newest
            .as_ref()
            .is_some_and(|base| base.thread.head() >= part.last)
        {
            break;
        }
        let candidate = base_within(connection, part.number, part.keys()).map_err(error::open)?;
        let Some(candidate) = candidate else { continue };
        if newest
            .as_ref()
            .is_none_or(|base| base.thread.head() < candidate.thread.head())
        {
            newest = Some(candidate);
        }
        break;
    }
    Ok(newest)
}

/// Returns the newest base of a number between two keys.
fn base_within(
    connection: &Connection,
    number: i64,
    [first, last]: [i64; 2],
) -> Result<Option<Base>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT at, sum, body FROM base WHERE at BETWEEN ?1 AND ?2 AND version = ?3
         ORDER BY at DESC",
    )?;
    let mut rows = statement.query((first, last, Base::VERSION))?;
    loop {
        let row = match rows.next() {
            // A base that SQLite cannot read is skipped, together with the older ones.
            Err(error) if error::is_damage(&error) => return Ok(None),
            row => row?,
        };
        let Some(row) = row else {
            return Ok(None);
        };
        if let Some(base) = open_base(row, number) {
            return Ok(Some(base));
        }
    }
}

fn open_base(row: &rusqlite::Row<'_>, number: i64) -> Option<Base> {
    let head = rowid::seq(row.get(0).ok()?);
    let sum = row.get_ref(1).ok()?.as_blob().ok()?;
    let body = row.get_ref(2).ok()?.as_blob().ok()?;
    if sum != chain::sum_of_base(number, head, Base::VERSION, body) {
        return None;
    }
    let json = zstd::decode_all(body).ok()?;
    serde_json::from_slice(&json).ok()
}

pub(super) fn corrupt(at: Seq, what: String) -> ReadError {
    ReadError::Corrupt { at, what }
}
