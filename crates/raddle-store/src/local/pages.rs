//! Pages of threads, turns and items.

use std::collections::BTreeSet;

use raddle_core::ports::{ListQuery, Page, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Event, Item, Seq, ThreadId, Timestamp, TurnId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::course::{Course, Order};
use super::fence::{self, Row};
use super::files::Files;
use super::key;
use super::project::{self, SUMMARY, Shelf};
use super::{error, read};
use crate::page::{self, ListCursor};
use crate::records::item_of;

/// A page of threads, newest first.
pub(super) fn list(connection: &Connection, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
    let cursor = ListCursor::parse(query.cursor.as_deref())?;
    let limit = page::limit(query.limit);
    let threads = of_list(connection, SUMMARY, query, cursor, limit + 1, |row| {
        let (_, summary) = project::read_summary(row)?;
        with_head(connection, summary)
    });
    Ok(page::of_threads(threads.map_err(error::open)?, limit))
}

/// A thread that comes by on a walk down the list.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) number: i64,
    pub(super) cursor: ListCursor,
    /// Under which numbers its records lie, and up to which of each.
    pub(super) rows: Vec<(i64, Seq)>,
}

/// The next threads of a walk down the list.
pub(super) fn step(
    connection: &Connection,
    query: &ListQuery,
    after: Option<ListCursor>,
    count: usize,
) -> Result<Vec<Passing>, Error> {
    let mut parts = connection.prepare_cached("SELECT taken, upto FROM part WHERE number = ?1")?;
    let columns = "number, recency_at, id,
        EXISTS (SELECT 1 FROM part WHERE part.number = summary.number)";
    of_list(connection, columns, query, after, count, |row| {
        let number = row.get(0)?;
        let id: [u8; 16] = row.get(2)?;
        let mut rows = vec![(number, key::SEQ_MAX)];
        if row.get(3)? {
            let taken = parts.query_map([number], |part| {
                let upto: i64 = part.get(1)?;
                Ok((part.get(0)?, Seq(upto.unsigned_abs())))
            })?;
            for part in taken {
                rows.push(part?);
            }
        }
        let cursor = ListCursor {
            recency: Timestamp(row.get(1)?),
            thread: uuid::Uuid::from_bytes(id).into(),
        };
        Ok(Passing {
            number,
            cursor,
            rows,
        })
    })
}

/// So many threads of a list after a cursor, newest first.
fn of_list<T>(
    connection: &Connection,
    columns: &str,
    query: &ListQuery,
    cursor: Option<ListCursor>,
    count: usize,
    mut take: impl FnMut(&rusqlite::Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
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
        "SELECT {columns} FROM summary WHERE shelf = ?1 {folder} AND (recency_at, id) < (?2, ?3)
         ORDER BY recency_at DESC, id DESC LIMIT ?5"
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
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let values = params![shelf as i64, recency, id, query.cwd, count];
    let mut rows = statement.query(values)?;
    let mut threads = Vec::new();
    while let Some(row) = rows.next()? {
        threads.push(take(row)?);
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
    files: &Files,
    thread: ThreadId,
    query: &PageQuery,
) -> Result<Page<TurnEntry>, ReadError> {
    let row = read::thread(connection, thread)?.ok_or(ReadError::NotFound)?;
    let scan = Scan::new(connection, row, query)?;
    let keys = scan.keys(connection, "turn").map_err(error::open)?;
    let mut turns = Vec::with_capacity(keys.len());
    for at in keys {
        turns.push((key::seq(at), turn(connection, files, &scan.course, at)?));
    }
    Ok(page::of_numbered(turns, scan.limit))
}

fn turn(
    connection: &Connection,
    files: &Files,
    course: &Course,
    at: i64,
) -> Result<TurnEntry, ReadError> {
    let from = key::seq(at);
    let (started_at, event) = read::event(connection, files, course, at)?;
    let Event::TurnStarted(started) = *event else {
        return Err(read::corrupt(from, "it begins no turn".to_owned()));
    };
    let mut entry = TurnEntry {
        turn: started.turn,
        from,
        started_at,
        ended: None,
    };
    let fail = |error| error::read(error, from);
    let until = next_turn(connection, course, from).map_err(fail)?;
    let mut last = before(until);
    // It ends once. Should another end lie there, it is some other turn's.
    while entry.ended.is_none() {
        let range = (from.next(), last);
        let ends = course.keys(connection, "turn_end", range, Order::NewestFirst, 1);
        let Some(end) = ends.map_err(fail)?.pop() else {
            break;
        };
        let (ended_at, event) = read::event(connection, files, course, end)?;
        match *event {
            Event::TurnEnded(ended) if ended.turn == entry.turn => {
                entry.ended = Some((ended.end, ended_at));
            }
            _ => last = before(key::seq(end)),
        }
    }
    Ok(entry)
}

/// Where the turn after a record begins.
fn next_turn(connection: &Connection, course: &Course, after: Seq) -> Result<Seq, Error> {
    let rest = (after.next(), key::SEQ_MAX);
    let next = course.keys(connection, "turn", rest, Order::OldestFirst, 1)?;
    Ok(next.first().map_or(Seq(u64::MAX), |at| key::seq(*at)))
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
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
    let mut scan = Scan::new(connection, row, query)?;
    if let Some(turn) = turn {
        let span = span(connection, &scan.course, turn).map_err(error::open)?;
        // A turn that is not there has no items.
        scan.clip(span.unwrap_or((Seq::ZERO, Seq::ZERO)));
    }
    let keys = scan.keys(connection, "item").map_err(error::open)?;
    let mut items = Vec::with_capacity(keys.len());
    for at in keys {
        let seq = key::seq(at);
        let (_, event) = read::event(connection, files, &scan.course, at)?;
        let Some((_, item)) = item_of(&event) else {
            return Err(read::corrupt(seq, "it is no item".to_owned()));
        };
        items.push((seq, item.clone()));
    }
    Ok(page::of_numbered(items, scan.limit))
}

/// Where a turn's records lie: turns follow one another, so it reaches to the next.
fn span(
    connection: &Connection,
    course: &Course,
    turn: &TurnId,
) -> Result<Option<(Seq, Seq)>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT at FROM turn WHERE id = ?1 AND at BETWEEN ?2 AND ?3")?;
    for part in course.parts(Seq::ZERO, key::SEQ_MAX) {
        let [first, last] = part.keys();
        let found = statement.query_row(params![turn.as_str(), first, last], |row| row.get(0));
        if let Some(at) = found.optional()? {
            let from = key::seq(at);
            return Ok(Some((from, next_turn(connection, course, from)?)));
        }
    }
    Ok(None)
}

/// A walk over what counts of a thread, from where the page before ended.
struct Scan {
    course: Course,
    /// From the first number to before the second, in the order of the walk.
    spans: Vec<(Seq, Seq)>,
    order: Order,
    limit: usize,
}

impl Scan {
    fn new(connection: &Connection, row: Row, query: &PageQuery) -> Result<Self, ReadError> {
        let course = Course::of(connection, row).map_err(error::open)?;
        let cuts = project::cuts(connection, &course).map_err(error::open)?;
        let mut scan = Self {
            course,
            spans: cuts.kept(),
            order: Order::OldestFirst,
            limit: page::limit(query.limit),
        };
        if query.newest_first {
            scan.spans.reverse();
            scan.order = Order::NewestFirst;
        }
        match page::seq_cursor(query.cursor.as_deref())? {
            Some(cursor) if query.newest_first => scan.clip((Seq::ZERO, cursor)),
            Some(cursor) => scan.clip((Seq(cursor.0.saturating_add(1)), Seq(u64::MAX))),
            None => {}
        }
        Ok(scan)
    }

    /// Leaves out what is not from the first number to before the second.
    fn clip(&mut self, (from, until): (Seq, Seq)) {
        for (first, end) in &mut self.spans {
            *first = from.max(*first);
            *end = until.min(*end);
        }
        self.spans.retain(|(first, end)| first < end);
    }

    /// The keys of a page, and one more if there is more.
    fn keys(&self, connection: &Connection, table: &str) -> Result<Vec<i64>, Error> {
        let mut keys = Vec::new();
        for (first, end) in &self.spans {
            let wanted = self.limit + 1 - keys.len();
            if wanted == 0 {
                break;
            }
            let range = (*first, before(*end));
            keys.extend(
                self.course
                    .keys(connection, table, range, self.order, wanted)?,
            );
        }
        Ok(keys)
    }
}
