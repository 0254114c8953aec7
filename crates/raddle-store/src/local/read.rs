//! Records and bases are read, and nothing is served that does not bear its marks.

use raddle_core::ports::ReadError;
use raddle_core::{Base, Body, Delta, Event, Record, Seq, ThreadId, Timestamp};
use rusqlite::{Connection, Error, OptionalExtension, Rows};

use super::append::Form;
use super::chain::{self, Link};
use super::error;
use super::fence::{self, Row};
use super::files::Files;
use super::key::{self, key};
use crate::blob::Hash;

/// A thread that can be read.
pub(super) fn thread(connection: &Connection, thread: ThreadId) -> Result<Option<Row>, ReadError> {
    let row = fence::row(connection, thread).map_err(error::open)?;
    Ok(row.filter(|row| !row.going))
}

/// The newest number; zero for a thread that is not there.
pub(super) fn head(connection: &Connection, id: ThreadId) -> Result<Seq, ReadError> {
    match thread(connection, id)? {
        Some(row) => fence::head(connection, row).map_err(|error| error::read(error, row.head)),
        None => Ok(Seq::ZERO),
    }
}

/// Records after a number.
pub(super) fn records(
    connection: &Connection,
    files: &Files,
    id: ThreadId,
    after: Seq,
    bytes_max: usize,
) -> Result<Vec<Record>, ReadError> {
    let row = thread(connection, id)?.ok_or(ReadError::NotFound)?;
    let fail = |error| error::read(error, after.next());
    let from = key(row.number, after.min(key::SEQ_MAX)) + 1;
    let range = [from, key::last(row.number)];
    let mut events = connection
        .prepare_cached(
            "SELECT at, time, form, chain, body FROM event WHERE at BETWEEN ?1 AND ?2 ORDER BY at",
        )
        .map_err(fail)?;
    let mut deltas = connection
        .prepare_cached(
            "SELECT at, time, item, part, offset, sum, text FROM delta
             WHERE at BETWEEN ?1 AND ?2 ORDER BY at",
        )
        .map_err(fail)?;
    let mut events = Events {
        rows: events.query(range).map_err(fail)?,
        files,
        row,
        last: Last::before(connection, row, id, from)?,
    };
    let mut deltas = Deltas {
        rows: deltas.query(range).map_err(fail)?,
        thread: id,
        last: after,
    };
    let (mut event, mut delta) = (events.next()?, deltas.next()?);
    let mut records = Vec::new();
    let mut bytes = 0;
    loop {
        let first = match (&event, &delta) {
            (Some(one), Some(other)) if one.record.seq < other.record.seq => event.take(),
            (_, Some(_)) => delta.take(),
            (Some(_), None) => event.take(),
            (None, None) => return Ok(records),
        };
        let Some(first) = first else {
            return Ok(records);
        };
        if bytes > 0 && bytes + first.bytes > bytes_max {
            return Ok(records);
        }
        bytes += first.bytes;
        match &first.record.body {
            Body::Event(_) => event = events.next()?,
            Body::Delta(_) => delta = deltas.next()?,
        }
        records.push(first.record);
    }
}

/// A record and about how much it weighs.
struct Weighed {
    record: Record,
    bytes: usize,
}

/// The event before the next: its number and its link.
struct Last {
    seq: Seq,
    link: Link,
}

impl Last {
    /// The last event before a key.
    fn before(
        connection: &Connection,
        row: Row,
        thread: ThreadId,
        from: i64,
    ) -> Result<Self, ReadError> {
        let range = [key::first(row.number), from - 1];
        let found = connection
            .prepare_cached(
                "SELECT at, chain FROM event WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT 1",
            )
            .and_then(|mut statement| {
                let last = |row: &rusqlite::Row<'_>| {
                    Ok(Self {
                        seq: key::seq(row.get(0)?),
                        link: row.get(1)?,
                    })
                };
                statement.query_row(range, last).optional()
            });
        let found = found.map_err(|error| error::read(error, key::seq(from)))?;
        Ok(found.unwrap_or_else(|| Self {
            seq: Seq::ZERO,
            link: chain::origin(thread),
        }))
    }
}

/// A thread's events in order, each held against the chain.
struct Events<'a> {
    rows: Rows<'a>,
    files: &'a Files,
    row: Row,
    last: Last,
}

impl Events<'_> {
    fn next(&mut self) -> Result<Option<Weighed>, ReadError> {
        let fail = |error| error::read(error, self.last.seq.next());
        let Some(row) = self.rows.next().map_err(fail)? else {
            // The fence knows where the chain ends; an event that vanished there leaves no other mark.
            if self.last.seq != self.row.head {
                let what = format!("the journal should go on to record {}", self.row.head);
                return Err(corrupt(self.last.seq.next(), what));
            }
            return Ok(None);
        };
        let stored = Stored::read(row).map_err(fail)?;
        let record = stored.open(&self.last.link, self.files)?;
        self.last = Last {
            seq: stored.seq,
            link: stored.link,
        };
        let bytes = stored.bytes;
        Ok(Some(Weighed { record, bytes }))
    }
}

/// An event's row.
struct Stored {
    seq: Seq,
    at: Timestamp,
    form: i64,
    link: Link,
    body: Vec<u8>,
    bytes: usize,
}

impl Stored {
    fn read(row: &rusqlite::Row<'_>) -> Result<Self, Error> {
        let body: Vec<u8> = row.get(4)?;
        Ok(Self {
            seq: key::seq(row.get(0)?),
            at: Timestamp(row.get(1)?),
            form: row.get(2)?,
            link: row.get(3)?,
            bytes: body.len().max(1),
            body,
        })
    }

    /// The record, if it bears the mark that must follow the one before it.
    fn open(&self, before: &Link, files: &Files) -> Result<Record, ReadError> {
        let seq = self.seq;
        if chain::link(before, seq, self.at, self.form, &self.body) != self.link {
            let what = "its hash does not follow from the record before it";
            return Err(corrupt(seq, what.to_owned()));
        }
        let newer = |what: String| ReadError::Newer(format!("record {seq}: {what}"));
        let form = Form::of(self.form).ok_or_else(|| newer(format!("form {}", self.form)))?;
        let event: Box<Event> = match form {
            Form::Inline => serde_json::from_slice(&self.body),
            Form::Beside => {
                let hash = Hash::try_from(self.body.as_slice());
                let hash = hash.map_err(|_| corrupt(seq, "it names no file".to_owned()))?;
                let body = files
                    .read(&hash)
                    .map_err(|it| corrupt(seq, it.to_string()))?;
                serde_json::from_slice(&body)
            }
        }
        // It is what was written, so whoever wrote it knows a word that we do not.
        .map_err(|error| newer(error.to_string()))?;
        Ok(Record {
            seq,
            at: self.at,
            body: Body::Event(event),
        })
    }
}

/// One event, held against the chain.
pub(super) fn event(
    connection: &Connection,
    files: &Files,
    row: Row,
    thread: ThreadId,
    at: i64,
) -> Result<Record, ReadError> {
    let seq = key::seq(at);
    let stored = connection
        .prepare_cached("SELECT at, time, form, chain, body FROM event WHERE at = ?1")
        .and_then(|mut statement| statement.query_row([at], Stored::read).optional())
        .map_err(|error| error::read(error, seq))?;
    let stored = stored.ok_or_else(|| corrupt(seq, "it is gone".to_owned()))?;
    let before = Last::before(connection, row, thread, at)?;
    stored.open(&before.link, files)
}

/// A thread's deltas in order, each held against its checksum.
struct Deltas<'a> {
    rows: Rows<'a>,
    thread: ThreadId,
    last: Seq,
}

impl Deltas<'_> {
    fn next(&mut self) -> Result<Option<Weighed>, ReadError> {
        let fail = |error| error::read(error, self.last.next());
        let Some(row) = self.rows.next().map_err(fail)? else {
            return Ok(None);
        };
        let (record, sum) = delta(row).map_err(fail)?;
        self.last = record.seq;
        let Body::Delta(delta) = &record.body else {
            return Ok(None);
        };
        if chain::sum(self.thread, record.seq, record.at, delta) != sum {
            let what = "its checksum is not that of its text";
            return Err(corrupt(record.seq, what.to_owned()));
        }
        let bytes = delta.text.len() + 1;
        Ok(Some(Weighed { record, bytes }))
    }
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
        seq: key::seq(row.get(0)?),
        at: Timestamp(row.get(1)?),
        body: Body::Delta(delta),
    };
    Ok((record, row.get(5)?))
}

/// The newest base whose head is not above a number. One that does not bear its mark, or has another
/// version's form, is passed over: it is only a shortcut.
pub(super) fn base(
    connection: &Connection,
    id: ThreadId,
    at: Option<Seq>,
) -> Result<Option<Base>, ReadError> {
    let Some(row) = thread(connection, id)? else {
        return Ok(None);
    };
    let upto = at.map_or(key::last(row.number), |at| key(row.number, at));
    let mut statement = connection
        .prepare_cached(
            "SELECT at, sum, body FROM base WHERE at BETWEEN ?1 AND ?2 AND version = ?3
             ORDER BY at DESC",
        )
        .map_err(error::open)?;
    let range = (key::first(row.number), upto, Base::VERSION);
    let mut rows = statement.query(range).map_err(error::open)?;
    while let Some(row) = rows.next().map_err(error::open)? {
        let base = open_base(row, id).map_err(error::open)?;
        if base.is_some() {
            return Ok(base);
        }
    }
    Ok(None)
}

fn open_base(row: &rusqlite::Row<'_>, thread: ThreadId) -> Result<Option<Base>, Error> {
    let head = key::seq(row.get(0)?);
    let sum: Vec<u8> = row.get(1)?;
    let body: Vec<u8> = row.get(2)?;
    if sum != chain::sum_of_base(thread, head, &body) {
        return Ok(None);
    }
    let json = zstd::decode_all(body.as_slice());
    Ok(json
        .ok()
        .and_then(|json| serde_json::from_slice(&json).ok()))
}

pub(super) fn corrupt(at: Seq, what: String) -> ReadError {
    ReadError::Corrupt { at, what }
}
