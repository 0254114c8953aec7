//! Pages of threads, turns and items.

use std::collections::BTreeSet;

use raddle_core::ports::{ListQuery, Page, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Body, Item, Seq, ThreadId, Timestamp, TurnId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::fence::{self, Row};
use super::files::Files;
use super::key::{self, key};
use super::project::{self, SUMMARY, Shelf};
use super::{error, read};
use crate::page::{self, ListCursor};
use crate::records::item_of;

/// A page of threads, newest first.
pub(super) fn list(connection: &Connection, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
    let cursor = ListCursor::parse(query.cursor.as_deref())?;
    let limit = page::limit(query.limit);
    let threads = threads(connection, query, cursor, limit, |_| true).map_err(error::open)?;
    Ok(page::of_threads(threads, limit))
}

/// As many threads as fit on a page, and one more if there are more.
pub(super) fn threads(
    connection: &Connection,
    query: &ListQuery,
    cursor: Option<ListCursor>,
    limit: usize,
    wanted: impl Fn(i64) -> bool,
) -> Result<Vec<Summary>, Error> {
    let shelf = if query.archived {
        Shelf::Archived
    } else {
        Shelf::Open
    };
    let folder = if query.cwd.is_some() {
        "AND cwd = ?4"
    } else {
        "AND ?4 IS NULL"
    };
    let sql = format!(
        "SELECT {SUMMARY} FROM summary WHERE shelf = ?1 {folder} AND (recency_at, id) < (?2, ?3)
         ORDER BY recency_at DESC, id DESC"
    );
    let (recency, id) = match cursor {
        Some(cursor) => (
            cursor.recency.0,
            cursor.thread.as_uuid().as_bytes().to_vec(),
        ),
        // Nothing comes after these: no id has 17 bytes.
        None => (i64::MAX, vec![0xff; 17]),
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let values = params![shelf as i64, recency, id, query.cwd];
    let mut rows = statement.query(values)?;
    let mut threads = Vec::new();
    while let Some(row) = rows.next()? {
        let number = row.get(0)?;
        if wanted(number) {
            let (_, summary) = project::read_summary(row)?;
            threads.push(with_head(connection, summary)?);
            if threads.len() > limit {
                break;
            }
        }
    }
    Ok(threads)
}

fn with_head(connection: &Connection, mut summary: Summary) -> Result<Summary, Error> {
    if let Some(row) = fence::row(connection, summary.thread)? {
        summary.head = fence::head(connection, row)?;
    }
    Ok(summary)
}

/// The threads of these numbers that a list may show, in no order.
pub(super) fn of_numbers(
    connection: &Connection,
    numbers: &BTreeSet<i64>,
) -> Result<Vec<Summary>, Error> {
    let sql = format!("SELECT {SUMMARY} FROM summary WHERE number = ?1 AND shelf <> ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut threads = Vec::new();
    for number in numbers {
        let hidden = Shelf::Hidden as i64;
        let found = statement.query_row([*number, hidden], project::read_summary);
        if let Some((_, summary)) = found.optional()? {
            threads.push(with_head(connection, summary)?);
        }
    }
    Ok(threads)
}

/// Whether a thread belongs on a page.
pub(super) fn wanted(it: &Summary, query: &ListQuery, cursor: Option<ListCursor>) -> bool {
    it.archived == query.archived
        && query.cwd.as_ref().is_none_or(|cwd| *cwd == it.cwd)
        && cursor.is_none_or(|cursor| ListCursor::of(it) < cursor)
}

/// A page of turns.
pub(super) fn turns(
    connection: &Connection,
    thread: ThreadId,
    query: &PageQuery,
) -> Result<Page<TurnEntry>, ReadError> {
    let row = read::thread(connection, thread)?.ok_or(ReadError::NotFound)?;
    let scan = Scan::new(connection, row, query, (Seq::ZERO, Seq(u64::MAX)))?;
    let keys = scan.keys(connection, "turn").map_err(error::open)?;
    let mut turns = Vec::with_capacity(keys.len());
    for at in keys {
        let seq = key::seq(at);
        let turn = turn(connection, at).map_err(|error| error::read(error, seq))?;
        turns.push((seq, turn));
    }
    Ok(page::of_numbered(turns, scan.limit))
}

fn turn(connection: &Connection, at: i64) -> Result<TurnEntry, Error> {
    connection
        .prepare_cached("SELECT id, started_at, ended_at, ended FROM turn WHERE at = ?1")?
        .query_row([at], |row| {
            let id: String = row.get(0)?;
            let ended_at: Option<i64> = row.get(2)?;
            let ended: Option<String> = row.get(3)?;
            let ended = ended.map(|text| serde_json::from_str(&text)).transpose();
            let ended = ended.map_err(|error| {
                Error::FromSqlConversionFailure(3, rusqlite::types::Type::Text, Box::new(error))
            })?;
            Ok(TurnEntry {
                turn: id.as_str().into(),
                from: key::seq(at),
                started_at: Timestamp(row.get(1)?),
                ended: ended.zip(ended_at.map(Timestamp)),
            })
        })
}

/// A page of items.
pub(super) fn items(
    connection: &Connection,
    files: &Files,
    thread: ThreadId,
    turn: Option<&TurnId>,
    query: &PageQuery,
) -> Result<Page<Item>, ReadError> {
    let row = read::thread(connection, thread)?.ok_or(ReadError::NotFound)?;
    let range = match turn {
        None => Some((Seq::ZERO, Seq(u64::MAX))),
        Some(turn) => span(connection, row, turn).map_err(error::open)?,
    };
    // A turn that is not there has no items.
    let scan = Scan::new(
        connection,
        row,
        query,
        range.unwrap_or((Seq::ZERO, Seq::ZERO)),
    )?;
    let keys = scan.keys(connection, "item").map_err(error::open)?;
    let mut items = Vec::with_capacity(keys.len());
    for at in keys {
        let seq = key::seq(at);
        let record = read::event(connection, files, row, thread, at)?;
        let Body::Event(event) = &record.body else {
            return Err(read::corrupt(seq, "it is no event".to_owned()));
        };
        let Some((_, item)) = item_of(event) else {
            return Err(read::corrupt(seq, "it is no item".to_owned()));
        };
        items.push((seq, item.clone()));
    }
    Ok(page::of_numbered(items, scan.limit))
}

/// Where a turn's records lie: turns follow one another, so it reaches to the next.
fn span(connection: &Connection, row: Row, turn: &TurnId) -> Result<Option<(Seq, Seq)>, Error> {
    let from: Option<i64> = connection
        .prepare_cached("SELECT at FROM turn WHERE number = ?1 AND id = ?2")?
        .query_row(params![row.number, turn.as_str()], |row| row.get(0))
        .optional()?;
    let Some(from) = from else { return Ok(None) };
    let until: Option<i64> = connection
        .prepare_cached("SELECT min(at) FROM turn WHERE at > ?1 AND at <= ?2")?
        .query_row([from, key::last(row.number)], |row| row.get(0))?;
    Ok(Some((
        key::seq(from),
        until.map_or(Seq(u64::MAX), key::seq),
    )))
}

/// A walk over what counts of a thread, from where the page before ended.
struct Scan {
    row: Row,
    /// From the first number to before the second, in the order of the walk.
    spans: Vec<(Seq, Seq)>,
    newest_first: bool,
    limit: usize,
}

impl Scan {
    fn new(
        connection: &Connection,
        row: Row,
        query: &PageQuery,
        within: (Seq, Seq),
    ) -> Result<Self, ReadError> {
        let (mut from, mut until) = within;
        match page::seq_cursor(query.cursor.as_deref())? {
            Some(cursor) if query.newest_first => until = until.min(cursor),
            Some(cursor) => from = from.max(Seq(cursor.0.saturating_add(1))),
            None => {}
        }
        let cuts = project::cuts(connection, row.number).map_err(error::open)?;
        let kept = cuts.kept().into_iter();
        let clipped = kept.map(|(first, end)| (first.max(from), end.min(until)));
        let mut spans: Vec<(Seq, Seq)> = clipped.filter(|(first, end)| first < end).collect();
        if query.newest_first {
            spans.reverse();
        }
        Ok(Self {
            row,
            spans,
            newest_first: query.newest_first,
            limit: page::limit(query.limit),
        })
    }

    /// The keys of a page, and one more if there is more.
    fn keys(&self, connection: &Connection, table: &str) -> Result<Vec<i64>, Error> {
        let order = if self.newest_first { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT at FROM {table} WHERE at BETWEEN ?1 AND ?2 ORDER BY at {order} LIMIT ?3"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut keys = Vec::new();
        for (first, end) in &self.spans {
            let wanted = self.limit + 1 - keys.len();
            if wanted == 0 {
                break;
            }
            let last = Seq(end.0.saturating_sub(1)).min(key::SEQ_MAX);
            let range = params![
                key(self.row.number, *first),
                key(self.row.number, last),
                wanted as i64
            ];
            let found = statement.query_map(range, |row| row.get(0))?;
            for at in found {
                keys.push(at?);
            }
        }
        Ok(keys)
    }
}
