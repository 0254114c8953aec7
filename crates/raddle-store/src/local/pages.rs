//! Pages of threads, turns and items.

use std::collections::BTreeSet;

use raddle_core::ports::{
    ItemEntry, ListOrder, ListQuery, Mark, Page, PageQuery, ReadError, Summary, TurnEntry,
};
use raddle_core::{Event, Seq, ThreadId, TurnId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::course::{Course, Order};
use super::fence::{self, Row};
use super::files::Files;
use super::key;
use super::project::{self, SUMMARY, Shelf};
use super::{error, read};
use crate::page::{self, ListCursor};
use crate::records::item_of;

/// A page of threads.
pub(super) fn list(connection: &Connection, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
    let cursor = ListCursor::parse(query)?;
    let threads = threads(connection, query, cursor, |_| true).map_err(error::open)?;
    Ok(page::of_threads(threads, query))
}

/// As many threads as fit on a page, and one more if there are more.
pub(super) fn threads(
    connection: &Connection,
    query: &ListQuery,
    cursor: Option<ListCursor>,
    wanted: impl Fn(i64) -> bool,
) -> Result<Vec<Summary>, Error> {
    let mut threads = Vec::new();
    if query.cwds.is_empty() {
        walk(connection, query, cursor, None, &wanted, &mut threads)?;
    }
    // Each folder has its own place in the index.
    let folders: BTreeSet<&String> = query.cwds.iter().collect();
    for folder in folders {
        let folder = Some(folder.as_str());
        walk(connection, query, cursor, folder, &wanted, &mut threads)?;
    }
    page::arrange(&mut threads, query);
    for summary in &mut threads {
        set_head(connection, summary)?;
    }
    Ok(threads)
}

/// Looks for threads of a folder, or of all, in the order of the list until a page is full.
fn walk(
    connection: &Connection,
    query: &ListQuery,
    cursor: Option<ListCursor>,
    folder: Option<&str>,
    wanted: &impl Fn(i64) -> bool,
    threads: &mut Vec<Summary>,
) -> Result<(), Error> {
    let shelf = if query.archived {
        Shelf::Archived
    } else {
        Shelf::Open
    };
    let column = match query.order {
        ListOrder::Recency => "recency_at",
        ListOrder::Created => "created_at",
        ListOrder::Updated => "updated_at",
    };
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
        "SELECT {SUMMARY} FROM summary
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
    let room = page::limit(query.limit) + 1;
    let mut found = 0;
    while found < room
        && let Some(row) = rows.next()?
    {
        if wanted(row.get(0)?) {
            let (_, summary) = project::read_summary(row)?;
            if query.takes(&summary) {
                threads.push(summary);
                found += 1;
            }
        }
    }
    Ok(())
}

/// A filter, as one value; nothing if it lets all pass.
fn list_of(wanted: &[String]) -> Option<String> {
    let some = (!wanted.is_empty()).then_some(wanted)?;
    serde_json::to_string(some).ok()
}

/// A text as a pattern that finds it in whatever case; nothing if SQLite does not know its letters.
fn pattern(text: &str) -> Option<String> {
    let text = Some(text).filter(|text| text.is_ascii())?;
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

fn set_head(connection: &Connection, summary: &mut Summary) -> Result<(), Error> {
    if let Some(row) = fence::row(connection, summary.thread)? {
        summary.head = fence::head(connection, row)?;
    }
    Ok(())
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
        if let Some((_, mut summary)) = found.optional()? {
            set_head(connection, &mut summary)?;
            threads.push(summary);
        }
    }
    Ok(threads)
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
    let scan = Scan::new(connection, row, query)?;
    let keys = scan.keys(connection, "turn").map_err(error::open)?;
    let mut turns = Vec::with_capacity(keys.len());
    for at in keys.iter().take(scan.limit) {
        turns.push(turn(connection, files, &scan.course, *at)?);
    }
    Ok(page::of_numbered(turns, keys.len() > scan.limit))
}

fn turn(
    connection: &Connection,
    files: &Files,
    course: &Course,
    at: i64,
) -> Result<TurnEntry, ReadError> {
    let from = key::seq(at);
    let found = read::event(connection, files, course, at)?;
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
    let until = next_turn(connection, course, from).map_err(fail)?;
    let mut last = before(until);
    // It ends once. Should another end lie there, it is some other turn's.
    while entry.ended.is_none() {
        let range = (from.next(), last);
        let ends = course.keys(connection, "turn_end", range, Order::NewestFirst, 1);
        let Some(end) = ends.map_err(fail)?.pop() else {
            break;
        };
        let found = read::event(connection, files, course, end)?;
        match *found.event {
            Event::TurnEnded(ended) if ended.turn == entry.turn => {
                entry.ended = Some((ended.end, found.at));
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
) -> Result<Page<ItemEntry>, ReadError> {
    let row = read::thread(connection, thread)?.ok_or(ReadError::NotFound)?;
    let mut scan = Scan::new(connection, row, query)?;
    if let Some(turn) = turn {
        let span = span(connection, &scan.course, turn).map_err(error::open)?;
        // A turn that is not there has no items.
        scan.clip(span.unwrap_or((Seq::ZERO, Seq::ZERO)));
    }
    let keys = scan.keys(connection, "item").map_err(error::open)?;
    let mut items = Vec::with_capacity(keys.len());
    let mut bytes = 0;
    for at in keys {
        // What no longer fits is not read; one that is only known to be there leads to the next page.
        let full = items.len() == scan.limit || bytes >= page::ITEMS_BYTES_MAX;
        if full {
            return Ok(page::of_numbered(items, true));
        }
        let seq = key::seq(at);
        let found = read::event(connection, files, &scan.course, at)?;
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
