//! Pages of turns and items.

use raddle_core::ports::{ItemEntry, Page, PageCursor, PageQuery, ReadError, TurnEntry};
use raddle_core::{Event, Seq, TurnId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::fence::ThreadRow;
use super::files::BlobFiles;
use super::kind_index::{KindEntry, KindIndex};
use super::rowid;
use super::segments::{ScanOrder, Segments};
use super::{error, project, read, schema};
use crate::page;
use crate::records::item_of;

/// A page of turns.
pub(super) fn turns(
    connection: &Connection,
    files: &BlobFiles,
    row: &ThreadRow,
    query: &PageQuery,
) -> Result<Page<TurnEntry>, ReadError> {
    let scan = Scan::new(connection, row, query)?;
    let entries = scan.entries(connection, KindIndex::Turn);
    let entries = entries.map_err(error::open)?;
    let mut turns = Vec::with_capacity(entries.len());
    for it in entries.iter().take(scan.limit) {
        turns.push(turn(connection, files, &scan.segments, *it)?);
    }
    Ok(page::of_numbered(turns, entries.len() > scan.limit))
}

fn turn(
    connection: &Connection,
    files: &BlobFiles,
    course: &Segments,
    entry: KindEntry,
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
    let last_end = |upto| {
        let end = course.last_upto(connection, KindIndex::TurnEnd, upto);
        end.map_err(error::open)
    };
    let until = next_turn(connection, course, from).map_err(error::open)?;
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
fn next_turn(connection: &Connection, course: &Segments, after: Seq) -> Result<Seq, Error> {
    let next = course.first_from(connection, KindIndex::Turn, after.next())?;
    Ok(next.map_or(Seq(u64::MAX), |next| next.seq()))
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

/// A page of items.
pub(super) fn items(
    connection: &Connection,
    files: &BlobFiles,
    row: &ThreadRow,
    turn: Option<&TurnId>,
    query: &PageQuery,
) -> Result<Page<ItemEntry>, ReadError> {
    let mut scan = Scan::new(connection, row, query)?;
    if let Some(turn) = turn {
        let span = span(connection, files, &scan.segments, turn)?;
        // A turn that is not there has no items.
        scan.clip(span.unwrap_or((Seq::ZERO, Seq::ZERO)));
    }
    let entries = scan.entries(connection, KindIndex::Item);
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
        let found = read::event(connection, files, &scan.segments, it.at)?;
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
    files: &BlobFiles,
    course: &Segments,
    turn: &TurnId,
) -> Result<Option<(Seq, Seq)>, ReadError> {
    let Some(at) = find_turn(connection, course, turn).map_err(error::open)? else {
        return Ok(None);
    };
    let from = rowid::seq(at);
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
    course: &Segments,
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
    course: &Segments,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let sql =
        format!("SELECT at FROM turn INDEXED BY {index} WHERE id = ?1 AND at BETWEEN ?2 AND ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    for part in course.between(Seq::ZERO, rowid::SEQ_MAX) {
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
    course: &Segments,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached("SELECT id = ?1 FROM turn WHERE at = ?2")?;
    let all = (Seq::ZERO, rowid::SEQ_MAX);
    for it in course.along(
        connection,
        KindIndex::Turn,
        all,
        ScanOrder::OldestFirst,
        usize::MAX,
    )? {
        if statement.query_row(params![turn.as_str(), it.at], |row| row.get(0))? {
            return Ok(Some(it.at));
        }
    }
    Ok(None)
}

/// A walk over what counts of a thread, from where the page before ended.
struct Scan {
    segments: Segments,
    /// From the first number to before the second, in the order of the walk.
    spans: Vec<(Seq, Seq)>,
    order: ScanOrder,
    limit: usize,
}

impl Scan {
    fn new(connection: &Connection, row: &ThreadRow, query: &PageQuery) -> Result<Self, ReadError> {
        let course = Segments::of(connection, row).map_err(error::open)?;
        let cuts = project::reverted_ranges(connection, &course).map_err(error::open)?;
        let mut scan = Self {
            segments: course,
            spans: cuts.live_ranges(),
            order: ScanOrder::OldestFirst,
            limit: page::limit(query.limit),
        };
        if query.newest_first {
            scan.spans.reverse();
            scan.order = ScanOrder::NewestFirst;
        }
        if let Some(PageCursor { seq, included }) = page::mark(query.cursor.as_deref())? {
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
    fn entries(&self, connection: &Connection, trail: KindIndex) -> Result<Vec<KindEntry>, Error> {
        let mut entries = Vec::new();
        for (first, end) in &self.spans {
            let wanted = self.limit + 1 - entries.len();
            if wanted == 0 {
                break;
            }
            let range = (*first, before(*end));
            let more = self
                .segments
                .along(connection, trail, range, self.order, wanted);
            entries.extend(more?);
        }
        Ok(entries)
    }
}
