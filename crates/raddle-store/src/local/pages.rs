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

/// Returns a page of turns.
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
    segments: &Segments,
    entry: KindEntry,
) -> Result<TurnEntry, ReadError> {
    let from = entry.seq();
    let loaded = read::event(connection, files, segments, entry.at)?;
    let Event::TurnStarted(started) = *loaded.event else {
        return Err(read::corrupt(from, "it begins no turn".to_owned()));
    };
    let mut entry = TurnEntry {
        turn: started.turn,
        root: started.root,
        from,
        started_at: loaded.at,
        ended: None,
    };
    let last_end = |upto| {
        let end = segments.last_upto(connection, KindIndex::TurnEnd, upto);
        end.map_err(error::open)
    };
    let until = next_turn(connection, segments, from).map_err(error::open)?;
    let mut end = last_end(before(until))?;
    // A turn ends once. Another end in this range belongs to another turn.
    while end > from {
        let loaded = read::event(connection, files, segments, segments.key_of(end))?;
        match *loaded.event {
            Event::TurnEnded(ended) if ended.turn == entry.turn => {
                entry.ended = Some((ended.end, loaded.at));
                break;
            }
            Event::TurnEnded(_) => end = last_end(before(end))?,
            _ => return Err(read::corrupt(end, "it ends no turn".to_owned())),
        }
    }
    Ok(entry)
}

/// Returns where the turn after a record begins.
fn next_turn(connection: &Connection, segments: &Segments, after: Seq) -> Result<Seq, Error> {
    let next = segments.first_from(connection, KindIndex::Turn, after.next())?;
    Ok(next.map_or(Seq(u64::MAX), |next| next.seq()))
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

/// Returns a page of items.
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
        // A missing turn has no items.
        scan.clip(span.unwrap_or((Seq::ZERO, Seq::ZERO)));
    }
    let entries = scan.entries(connection, KindIndex::Item);
    let entries = entries.map_err(error::open)?;
    let mut items = Vec::with_capacity(entries.len());
    let mut bytes = 0;
    for it in entries {
        // Items beyond the limit are not read; the existence of one more makes a next page.
        let full = items.len() == scan.limit || bytes >= page::ITEMS_BYTES_MAX;
        if full {
            return Ok(page::of_numbered(items, true));
        }
        let seq = it.seq();
        let loaded = read::event(connection, files, &scan.segments, it.at)?;
        bytes += loaded.bytes;
        let Some((turn, item)) = item_of(&loaded.event) else {
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

/// Returns the range of a turn's records. Turns follow one another, so it extends to the next.
fn span(
    connection: &Connection,
    files: &BlobFiles,
    segments: &Segments,
    turn: &TurnId,
) -> Result<Option<(Seq, Seq)>, ReadError> {
    let Some(at) = find_turn(connection, segments, turn).map_err(error::open)? else {
        return Ok(None);
    };
    let from = rowid::seq(at);
    let loaded = read::event(connection, files, segments, at)?;
    match &*loaded.event {
        Event::TurnStarted(it) if it.turn == *turn => {}
        _ => return Err(read::corrupt(from, "it does not begin the turn".to_owned())),
    }
    let until = next_turn(connection, segments, from).map_err(error::open)?;
    Ok(Some((from, until)))
}

/// Returns the record that begins a turn. A turn missing from one index is searched in the other; a
/// file of an older layout with one index is scanned instead.
fn find_turn(
    connection: &Connection,
    segments: &Segments,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let at = turn_by_index(connection, "turn_id", segments, turn)?;
    if at.is_some() {
        return Ok(at);
    }
    let missed = if schema::version(connection)? < schema::TURNS_TWICE {
        turn_by_scan(connection, segments, turn)?
    } else {
        turn_by_index(connection, "turn_id_again", segments, turn)?
    };
    match missed {
        None => Ok(None),
        Some(_) => Err(error::damaged("the index of turns is incomplete")),
    }
}

fn turn_by_index(
    connection: &Connection,
    index: &str,
    segments: &Segments,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let sql =
        format!("SELECT at FROM turn INDEXED BY {index} WHERE id = ?1 AND at BETWEEN ?2 AND ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    for part in segments.between(Seq::ZERO, rowid::SEQ_MAX) {
        let [first, last] = part.keys();
        let row = statement.query_row(params![turn.as_str(), first, last], |row| row.get(0));
        if let Some(at) = row.optional()? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn turn_by_scan(
    connection: &Connection,
    segments: &Segments,
    turn: &TurnId,
) -> Result<Option<i64>, Error> {
    let mut statement = connection.prepare_cached("SELECT id = ?1 FROM turn WHERE at = ?2")?;
    let all = (Seq::ZERO, rowid::SEQ_MAX);
    for it in segments.along(
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

/// Scan over the live records of a thread, from the end of the previous page.
struct Scan {
    segments: Segments,
    /// Half-open ranges of record numbers, in the order of the scan.
    spans: Vec<(Seq, Seq)>,
    order: ScanOrder,
    limit: usize,
}

impl Scan {
    fn new(connection: &Connection, row: &ThreadRow, query: &PageQuery) -> Result<Self, ReadError> {
        let segments = Segments::of(connection, row).map_err(error::open)?;
        let reverted = project::reverted_ranges(connection, &segments).map_err(error::open)?;
        let mut scan = Self {
            segments,
            spans: reverted.live_ranges(),
            order: ScanOrder::OldestFirst,
            limit: page::limit(query.limit),
        };
        if query.newest_first {
            scan.spans.reverse();
            scan.order = ScanOrder::NewestFirst;
        }
        if let Some(PageCursor { seq, included }) = page::parse_cursor(query.cursor.as_deref())? {
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

    /// Restricts the scan to the numbers from the first to before the second.
    fn clip(&mut self, (from, until): (Seq, Seq)) {
        for (first, end) in &mut self.spans {
            *first = from.max(*first);
            *end = until.min(*end);
        }
        self.spans.retain(|(first, end)| first < end);
    }

    /// Returns the rows of a page, and one more if there is more.
    fn entries(&self, connection: &Connection, index: KindIndex) -> Result<Vec<KindEntry>, Error> {
        let mut entries = Vec::new();
        for (first, end) in &self.spans {
            let remaining = self.limit + 1 - entries.len();
            if remaining == 0 {
                break;
            }
            let range = (*first, before(*end));
            let more = self
                .segments
                .along(connection, index, range, self.order, remaining);
            entries.extend(more?);
        }
        Ok(entries)
    }
}
