//! Pages of threads, turns and items.

use std::collections::BTreeSet;

use raddle_core::ports::{
    ItemEntry, ListOrder, ListQuery, Mark, Page, PageQuery, ReadError, Summary, TurnEntry,
};
use raddle_core::{Event, Seq, ThreadId, Timestamp, TurnId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::course::{Course, Order};
use super::fence::{self, Row};
use super::files::Files;
use super::key;
use super::project::{self, Listed, SUMMARY, Shelf};
use super::trail::{Entry, Trail};
use super::{error, read, schema};
use crate::page::{self, ListCursor, Place};
use crate::records::item_of;

/// The longest text that SQLite is asked to find. It refuses patterns of 50,000 bytes.
const PATTERN_BYTES_MAX: usize = 1_000;

/// A page of threads.
pub(super) fn list(connection: &Connection, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
    let cursor = ListCursor::parse(query)?;
    let room = page::limit(query.limit) + 1;
    let threads = of_list(connection, SUMMARY, query, cursor, room, |row| {
        let number = row.get(0)?;
        let thread = fence::of_number(connection, number)?;
        let (id, thread) = thread.ok_or_else(|| nameless(number))?;
        let listed = Listed::read(row, &thread)?;
        let taken = query.takes(&listed.summary);
        let summary = taken.then(|| with_head(connection, id, &thread, listed));
        summary.transpose()
    });
    let mut threads = threads.map_err(error::open)?;
    page::arrange(&mut threads, query);
    Ok(page::of_threads(threads, query))
}

/// A thread that comes by on a walk down the list.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) number: i64,
    pub(super) place: Place,
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
    let time = column(query);
    let columns = format!(
        "number, {time}, id, EXISTS (SELECT 1 FROM part WHERE part.number = summary.number)"
    );
    let mut passing = of_list(connection, &columns, query, after, count, |row| {
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
        let place = (Timestamp(row.get(1)?), uuid::Uuid::from_bytes(id).into());
        Ok(Some(Passing {
            number,
            place,
            rows,
        }))
    })?;
    passing.sort_by_key(|it| it.place);
    if !query.oldest_first {
        passing.reverse();
    }
    passing.truncate(count);
    Ok(passing)
}

fn column(query: &ListQuery) -> &'static str {
    match query.order {
        ListOrder::Recency => "recency_at",
        ListOrder::Created => "created_at",
        ListOrder::Updated => "updated_at",
    }
}

/// So many threads of a list after a cursor; of each folder so many, if folders are asked for.
fn of_list<T>(
    connection: &Connection,
    columns: &str,
    query: &ListQuery,
    cursor: Option<ListCursor>,
    count: usize,
    mut take: impl FnMut(&rusqlite::Row<'_>) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    // Each folder has its own place in the index.
    let mut folders: BTreeSet<Option<&str>> =
        query.cwds.iter().map(|it| Some(it.as_str())).collect();
    if folders.is_empty() {
        folders.insert(None);
    }
    let mut all = Vec::new();
    for folder in folders {
        let room = all.len() + count;
        walk(connection, columns, query, cursor, folder, |row| {
            all.extend(take(row)?);
            Ok(all.len() < room)
        })?;
    }
    Ok(all)
}

/// Walks down the list of a folder, or of all, for as long as more is wanted.
fn walk(
    connection: &Connection,
    columns: &str,
    query: &ListQuery,
    cursor: Option<ListCursor>,
    folder: Option<&str>,
    mut more: impl FnMut(&rusqlite::Row<'_>) -> Result<bool, Error>,
) -> Result<(), Error> {
    let shelf = if query.archived {
        Shelf::Archived
    } else {
        Shelf::Open
    };
    let column = column(query);
    let (further, direction) = if query.oldest_first {
        (">", "ASC")
    } else {
        ("<", "DESC")
    };
    let included = cursor.is_some_and(|cursor| cursor.included);
    let equal = if included { "=" } else { "" };
    let in_folder = if folder.is_some() {
        "cwd = ?4"
    } else {
        "?4 IS NULL"
    };
    let sql = format!(
        "SELECT {columns} FROM summary
         WHERE shelf = ?1 AND ({column}, id) {further}{equal} (?2, ?3) AND {in_folder}
             AND (?5 IS NULL OR provider IN (SELECT value FROM json_each(?5)))
             AND (?6 IS NULL OR source IN (SELECT value FROM json_each(?6)))
             AND (?7 IS NULL OR originator IN (SELECT value FROM json_each(?7)))
             AND (?8 IS NULL OR name LIKE ?8 ESCAPE '!' OR preview LIKE ?8 ESCAPE '!')
         ORDER BY {column} {direction}, id {direction}"
    );
    let (time, id) = match cursor {
        Some(ListCursor { place, .. }) => (place.0.0, place.1.as_uuid().as_bytes().to_vec()),
        // Nothing comes before these or after these: every id has 16 bytes.
        None if query.oldest_first => (i64::MIN, Vec::new()),
        None => (i64::MAX, vec![0xff; 17]),
    };
    let sources = query.sources.as_ref();
    let sources = sources.map(|them| them.iter().map(project::source).collect::<Vec<_>>());
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        shelf as i64,
        time,
        id,
        folder,
        list_of(&query.providers),
        sources.and_then(|sources| serde_json::to_string(&sources).ok()),
        list_of(&query.originators),
        query.title.as_deref().and_then(pattern),
    ])?;
    while let Some(row) = rows.next()? {
        if !more(row)? {
            break;
        }
    }
    Ok(())
}

/// A filter, as one value; nothing if it lets all pass.
fn list_of(wanted: &[String]) -> Option<String> {
    let some = (!wanted.is_empty()).then_some(wanted)?;
    serde_json::to_string(some).ok()
}

/// A text as a pattern that finds it in whatever case; nothing if SQLite does not know its letters, or
/// would not take one so long. Each thread is looked at once more in any case.
fn pattern(text: &str) -> Option<String> {
    let text = Some(text).filter(|text| text.is_ascii() && text.len() <= PATTERN_BYTES_MAX)?;
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    Some(pattern)
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
    let place = page::place(it, query.order);
    query.takes(it) && cursor.is_none_or(|cursor| cursor.leads_to(place, query.oldest_first))
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
    for it in entries.iter().take(scan.limit) {
        turns.push(turn(connection, files, &scan.course, *it)?);
    }
    Ok(page::of_numbered(turns, entries.len() > scan.limit))
}

fn turn(
    connection: &Connection,
    files: &Files,
    course: &Course,
    entry: Entry,
) -> Result<TurnEntry, ReadError> {
    let from = entry.seq();
    let found = read::event(connection, files, course, entry.at)?;
    let Event::TurnStarted(started) = *found.event else {
        return Err(read::corrupt(from, "it begins no turn".to_owned()));
    };
    let mut entry = TurnEntry {
        turn: started.turn,
        root: started.root,
        from,
        started_at: found.at,
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
        let found = read::event(connection, files, course, course.key_of(end))?;
        match *found.event {
            Event::TurnEnded(ended) if ended.turn == entry.turn => {
                entry.ended = Some((ended.end, found.at));
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
) -> Result<Page<ItemEntry>, ReadError> {
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
    let mut bytes = 0;
    for it in entries {
        // What no longer fits is not read; one that is only known to be there leads to the next page.
        let full = items.len() == scan.limit || bytes >= page::ITEMS_BYTES_MAX;
        if full {
            return Ok(page::of_numbered(items, true));
        }
        let seq = it.seq();
        let found = read::event(connection, files, &scan.course, it.at)?;
        bytes += found.bytes;
        let Some((turn, item)) = item_of(&found.event) else {
            return Err(read::corrupt(seq, "it is no item".to_owned()));
        };
        items.push(ItemEntry {
            turn: turn.clone(),
            seq,
            item: item.clone(),
        });
    }
    Ok(page::of_numbered(items, false))
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
    let found = read::event(connection, files, course, at)?;
    match &*found.event {
        Event::TurnStarted(it) if it.turn == *turn => {}
        _ => return Err(read::corrupt(from, "it does not begin the turn".to_owned())),
    }
    let until = next_turn(connection, course, from).map_err(error::open)?;
    Ok(Some((from, until)))
}

/// The record that begins a turn. What one index does not find is looked for in the other, and in a file
/// that has but one of them without it.
fn find_turn(
    connection: &Connection,
    course: &Course,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let found = turn_within(connection, "turn_id", course, turn)?;
    if found.is_some() {
        return Ok(found);
    }
    let missed = if schema::version(connection)? < schema::TURNS_TWICE {
        turn_along(connection, course, turn)?
    } else {
        turn_within(connection, "turn_id_again", course, turn)?
    };
    match missed {
        None => Ok(None),
        Some(_) => Err(error::damaged(
            "the index of turns does not have all of them",
        )),
    }
}

fn turn_within(
    connection: &Connection,
    index: &str,
    course: &Course,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let sql =
        format!("SELECT at FROM turn INDEXED BY {index} WHERE id = ?1 AND at BETWEEN ?2 AND ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    for part in course.parts(Seq::ZERO, key::SEQ_MAX) {
        let [first, last] = part.keys();
        let found = statement.query_row(params![turn.as_str(), first, last], |row| row.get(0));
        if let Some(at) = found.optional()? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn turn_along(
    connection: &Connection,
    course: &Course,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached("SELECT id = ?1 FROM turn WHERE at = ?2")?;
    let all = (Seq::ZERO, key::SEQ_MAX);
    for it in course.along(connection, Trail::Turn, all, Order::OldestFirst, usize::MAX)? {
        if statement.query_row(params![turn.as_str(), it.at], |row| row.get(0))? {
            return Ok(Some(it.at));
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
        if let Some(Mark { seq, included }) = page::mark(query.cursor.as_deref())? {
            let after = Seq(seq.0.saturating_add(1));
            scan.clip(match (query.newest_first, included) {
                (true, true) => (Seq::ZERO, after),
                (true, false) => (Seq::ZERO, seq),
                (false, true) => (seq, Seq(u64::MAX)),
                (false, false) => (after, Seq(u64::MAX)),
            });
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
