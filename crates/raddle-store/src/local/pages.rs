//! Pages of threads, turns and items.

use std::collections::BTreeSet;

use raddle_core::ports::{ListQuery, Page, PageQuery, ReadError, Summary, TurnEntry};
use raddle_core::{Event, Item, Seq, ThreadId, TurnId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::course::{Course, Order};
use super::fence::{self, Row};
use super::files::Files;
use super::key;
use super::project::{self, Listed, SUMMARY, Shelf};
use super::trail::{Entry, Trail};
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
    let (index, folder) = match &query.cwd {
        Some(_) => ("summary_folder", "AND cwd = ?4"),
        None => ("summary_recent", "AND ?4 IS NULL"),
    };
    let select = |columns: &str, index: &str| {
        format!(
            "SELECT {columns} FROM summary INDEXED BY {index}
             WHERE shelf = ?1 {folder} AND (recency_at, id) < (?2, ?3)
             ORDER BY recency_at DESC, id DESC"
        )
    };
    let (recency, id) = match cursor {
        Some(cursor) => (
            cursor.recency.0,
            cursor.thread.as_uuid().as_bytes().to_vec(),
        ),
        // Nothing comes after these: no id has 17 bytes.
        None => (i64::MAX, vec![0xff; 17]),
    };
    let values = params![shelf as i64, recency, id, query.cwd];
    let mut statement = connection.prepare_cached(&select(SUMMARY, index))?;
    let mut rows = statement.query(values)?;
    let again = format!("{index}_again");
    let mut witness = connection.prepare_cached(&select("number", &again))?;
    let mut witness = witness.query(values)?;
    let mut threads = Vec::new();
    loop {
        let next = rows.next()?;
        let number: Option<i64> = next.map(|row| row.get(0)).transpose()?;
        let seen: Option<i64> = witness.next()?.map(|row| row.get(0)).transpose()?;
        if number != seen {
            return Err(error::damaged("the two indexes of the list do not agree"));
        }
        let (Some(row), Some(number)) = (next, number) else {
            break;
        };
        if wanted(number) {
            let thread = fence::of_number(connection, number)?;
            let (id, thread) = thread.ok_or_else(|| nameless(number))?;
            let listed = Listed::read(row, &thread)?;
            threads.push(with_head(connection, id, &thread, listed)?);
            if threads.len() > limit {
                break;
            }
        }
    }
    Ok(threads)
}

fn nameless(number: i64) -> Error {
    error::damaged(&format!(
        "the list has a thread of the number {number}, which is not there"
    ))
}

fn with_head(
    connection: &Connection,
    thread: ThreadId,
    row: &Row,
    listed: Listed,
) -> Result<Summary, Error> {
    let mut summary = listed.summary;
    if summary.thread != thread {
        return Err(nameless(row.number));
    }
    summary.head = fence::head(connection, thread, row)?;
    Ok(summary)
}

/// The threads of these numbers that a list may show, in no order.
pub(super) fn of_numbers(
    connection: &Connection,
    numbers: &BTreeSet<i64>,
) -> Result<Vec<Summary>, Error> {
    let mut threads = Vec::new();
    for number in numbers {
        if let Some((thread, row)) = fence::of_number(connection, *number)? {
            threads.extend(shown(connection, thread, &row)?);
        }
    }
    Ok(threads)
}

/// A thread as a list shows it, if one does.
pub(super) fn shown(
    connection: &Connection,
    thread: ThreadId,
    row: &Row,
) -> Result<Option<Summary>, Error> {
    let listed = project::listed(connection, row)?;
    let listed = listed.filter(|it| it.shelf != Shelf::Hidden);
    let summary = listed.map(|it| with_head(connection, thread, row, it));
    summary.transpose()
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
    let scan = Scan::new(connection, &row, query)?;
    let entries = scan.entries(connection, Trail::Turn);
    let entries = entries.map_err(error::open)?;
    let mut turns = Vec::with_capacity(entries.len());
    for it in entries {
        turns.push((it.seq(), turn(connection, files, &scan.course, it)?));
    }
    Ok(page::of_numbered(turns, scan.limit))
}

fn turn(
    connection: &Connection,
    files: &Files,
    course: &Course,
    entry: Entry,
) -> Result<TurnEntry, ReadError> {
    let from = entry.seq();
    let (started_at, event) = read::event(connection, files, course, entry.at)?;
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
    let last_end = |upto| {
        let end = course.last_upto(connection, Trail::TurnEnd, upto);
        end.map_err(fail)
    };
    let until = next_turn(connection, course, from).map_err(fail)?;
    let mut end = last_end(before(until))?;
    // It ends once. Should another end lie there, it is some other turn's.
    while end > from {
        let (ended_at, event) = read::event(connection, files, course, course.key_of(end))?;
        match *event {
            Event::TurnEnded(ended) if ended.turn == entry.turn => {
                entry.ended = Some((ended.end, ended_at));
                break;
            }
            Event::TurnEnded(_) => end = last_end(before(end))?,
            _ => return Err(read::corrupt(end, "it ends no turn".to_owned())),
        }
    }
    Ok(entry)
}

/// Where the turn after a record begins.
fn next_turn(connection: &Connection, course: &Course, after: Seq) -> Result<Seq, Error> {
    let next = course.first_from(connection, Trail::Turn, after.next())?;
    Ok(next.map_or(Seq(u64::MAX), |next| next.seq()))
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
    let mut scan = Scan::new(connection, &row, query)?;
    if let Some(turn) = turn {
        let span = span(connection, files, &scan.course, turn)?;
        // A turn that is not there has no items.
        scan.clip(span.unwrap_or((Seq::ZERO, Seq::ZERO)));
    }
    let entries = scan.entries(connection, Trail::Item);
    let entries = entries.map_err(error::open)?;
    let mut items = Vec::with_capacity(entries.len());
    for it in entries {
        let seq = it.seq();
        let (_, event) = read::event(connection, files, &scan.course, it.at)?;
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
    files: &Files,
    course: &Course,
    turn: &TurnId,
) -> Result<Option<(Seq, Seq)>, ReadError> {
    let Some(at) = find_turn(connection, course, turn).map_err(error::open)? else {
        return Ok(None);
    };
    let from = key::seq(at);
    let (_, event) = read::event(connection, files, course, at)?;
    match &*event {
        Event::TurnStarted(it) if it.turn == *turn => {}
        _ => return Err(read::corrupt(from, "it does not begin the turn".to_owned())),
    }
    let until = next_turn(connection, course, from).map_err(error::open)?;
    Ok(Some((from, until)))
}

/// The record that begins a turn. What the index does not find is looked for without it.
fn find_turn(
    connection: &Connection,
    course: &Course,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT at FROM turn WHERE id = ?1 AND at BETWEEN ?2 AND ?3")?;
    for part in course.parts(Seq::ZERO, key::SEQ_MAX) {
        let [first, last] = part.keys();
        let found = statement.query_row(params![turn.as_str(), first, last], |row| row.get(0));
        if let Some(at) = found.optional()? {
            return Ok(Some(at));
        }
    }
    let mut statement = connection.prepare_cached("SELECT id = ?1 FROM turn WHERE at = ?2")?;
    let all = (Seq::ZERO, key::SEQ_MAX);
    for it in course.along(connection, Trail::Turn, all, Order::OldestFirst, usize::MAX)? {
        if statement.query_row(params![turn.as_str(), it.at], |row| row.get(0))? {
            return Err(error::damaged(
                "the index of turns does not have all of them",
            ));
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
    fn new(connection: &Connection, row: &Row, query: &PageQuery) -> Result<Self, ReadError> {
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

    /// The rows of a page, and one more if there is more.
    fn entries(&self, connection: &Connection, trail: Trail) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for (first, end) in &self.spans {
            let wanted = self.limit + 1 - entries.len();
            if wanted == 0 {
                break;
            }
            let range = (*first, before(*end));
            let more = self
                .course
                .along(connection, trail, range, self.order, wanted);
            entries.extend(more?);
        }
        Ok(entries)
    }
}
