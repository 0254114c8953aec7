//! Pages of turns and items.

use std::collections::HashMap;

use raddle_core::ports::{ItemEntry, Page, PageCursor, PageQuery, ReadError, TurnEntry};
use raddle_core::{Event, Seq, ThreadId, Timestamp, TurnEnd, TurnId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::error::{self, corrupt};
use super::event_row;
use super::segments::{SegmentColumns, Segments};
use super::statement::{indexed, storable};
use super::thread_state::seq;
use crate::page;
use crate::records::item_of;
use crate::reverted_ranges::RevertedRanges;

/// Kind of records that pages are built from, as a column holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub(super) enum MarkKind {
    /// Begins a turn.
    Turn = 0,
    /// Ends a turn.
    TurnEnd = 1,
    /// Has a whole item.
    Item = 2,
    /// Reverts turns.
    Revert = 3,
}

/// All numbers.
const ALL: (Seq, Seq) = (Seq::ZERO, Seq(u64::MAX));

/// Position of a record.
#[derive(Clone, Copy, Debug)]
struct RecordKey {
    log: Uuid,
    seq: Seq,
    /// Length of its JSON.
    bytes: usize,
}

/// Returns a page of turns.
pub(super) async fn turns(
    journal: &SharedJournal,
    thread: ThreadId,
    query: PageQuery,
) -> Result<Page<TurnEntry>, ReadError> {
    let scan = Scan::new(journal, thread, &query).await?;
    let turns = turns_of(&scan).await;
    scan.unless_deleted(thread, turns).await
}

async fn turns_of(scan: &Scan<'_>) -> Result<Page<TurnEntry>, ReadError> {
    let mut places = scan.places(MarkKind::Turn).await?;
    let has_more = places.len() > scan.limit;
    places.truncate(scan.limit);
    let events = scan.events(&places).await?;
    let ends = scan.ends(&places).await?;
    let mut turns = Vec::with_capacity(places.len());
    for place in &places {
        let (at, event) = known(&events, place.seq)?;
        let Event::TurnStarted(started) = event else {
            return Err(corrupt(place.seq, "it begins no turn"));
        };
        turns.push(TurnEntry {
            turn: started.turn.clone(),
            root: started.root.clone(),
            from: place.seq,
            started_at: *at,
            ended: ends.of(place.seq, &started.turn),
        });
    }
    Ok(page::of_numbered(turns, has_more))
}

/// Returns a page of items.
pub(super) async fn items(
    journal: &SharedJournal,
    thread: ThreadId,
    turn: Option<TurnId>,
    query: PageQuery,
) -> Result<Page<ItemEntry>, ReadError> {
    let mut scan = Scan::new(journal, thread, &query).await?;
    let items = items_of(&mut scan, turn).await;
    scan.unless_deleted(thread, items).await
}

async fn items_of(scan: &mut Scan<'_>, turn: Option<TurnId>) -> Result<Page<ItemEntry>, ReadError> {
    if let Some(turn) = turn {
        let span = scan.span(&turn).await?;
        // A missing turn has no items.
        scan.clip(span.unwrap_or((Seq::ZERO, Seq::ZERO)));
    }
    let mut places = scan.places(MarkKind::Item).await?;
    let count = fitting(&places, scan.limit);
    let has_more = places.len() > count;
    places.truncate(count);
    let events = scan.events(&places).await?;
    let mut items = Vec::with_capacity(places.len());
    for place in &places {
        let (_, event) = known(&events, place.seq)?;
        let Some((turn, item)) = item_of(event) else {
            return Err(corrupt(place.seq, "it is no item"));
        };
        items.push(ItemEntry {
            turn: turn.clone(),
            seq: place.seq,
            item: item.clone(),
        });
    }
    Ok(page::of_numbered(items, has_more))
}

/// Returns how many of the entries fit on a page: at least one.
fn fitting(places: &[RecordKey], limit: usize) -> usize {
    let mut bytes = 0;
    let fitting = places.iter().take(limit).take_while(|place| {
        let fits = bytes < page::ITEMS_BYTES_MAX;
        bytes += place.bytes;
        fits
    });
    fitting.count()
}

type Events = HashMap<Seq, (Timestamp, Event)>;

fn known(events: &Events, seq: Seq) -> Result<&(Timestamp, Event), ReadError> {
    events.get(&seq).ok_or_else(|| corrupt(seq, "it is gone"))
}

/// Scan over the live records of a thread, from the end of the previous page.
struct Scan<'a> {
    journal: &'a SharedJournal,
    segments: Segments,
    /// Half-open ranges of record numbers, in the order of the scan.
    spans: Vec<(Seq, Seq)>,
    newest_first: bool,
    limit: usize,
}

impl<'a> Scan<'a> {
    async fn new(
        journal: &'a SharedJournal,
        thread: ThreadId,
        query: &PageQuery,
    ) -> Result<Self, ReadError> {
        let cursor = page::parse_cursor(query.cursor.as_deref());
        let mut scan = Self {
            journal,
            segments: Segments::existing(journal, thread).await?,
            spans: vec![ALL],
            newest_first: false,
            limit: page::limit(query.limit),
        };
        scan.spans = scan.reverted_ranges().await?.live_ranges();
        scan.newest_first = query.newest_first;
        if scan.newest_first {
            scan.spans.reverse();
        }
        if let Some(PageCursor { seq, included }) = cursor? {
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

    /// Returns a page, unless it is damaged because the thread was deleted while it was read.
    async fn unless_deleted<T>(
        &self,
        thread: ThreadId,
        page: Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if matches!(page, Err(ReadError::Corrupt { .. }))
            && Segments::existing(self.journal, thread).await?.own() != self.segments.own()
        {
            return Err(ReadError::NotFound);
        }
        page
    }

    async fn reverted_ranges(&self) -> Result<RevertedRanges, ReadError> {
        let sql = "SELECT marks.seq, marks.since
                   FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS it(log, first, last)
                   JOIN marks ON marks.log = it.log AND marks.kind = $4
                       AND marks.seq BETWEEN it.first AND it.last
                   ORDER BY marks.seq";
        let mut ranges = RevertedRanges::default();
        for row in self.query(sql, ALL, MarkKind::Revert).await? {
            ranges.revert(seq(row.get(1)), seq(row.get(0)));
        }
        Ok(ranges)
    }

    /// Restricts the scan to the numbers from the first to before the second.
    fn clip(&mut self, (from, until): (Seq, Seq)) {
        for (first, end) in &mut self.spans {
            *first = from.max(*first);
            *end = until.min(*end);
        }
        self.spans.retain(|(first, end)| first < end);
    }

    /// Returns the records of a page, and one more if there is more.
    async fn places(&self, mark: MarkKind) -> Result<Vec<RecordKey>, ReadError> {
        let direction = if self.newest_first { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT marks.seq, records.bytes FROM marks
             JOIN records ON records.log = marks.log AND records.seq = marks.seq
             WHERE marks.log = $1 AND marks.kind = $2 AND marks.seq BETWEEN $3 AND $4
             ORDER BY marks.seq {direction} LIMIT $5"
        );
        let mut places = Vec::new();
        for span in &self.spans {
            let mut segments: Vec<_> = self.segments.within(*span).collect();
            if self.newest_first {
                segments.reverse();
            }
            for segment in segments {
                let remaining = self.limit + 1 - places.len();
                if remaining == 0 {
                    return Ok(places);
                }
                let columns: SegmentColumns = [segment].into_iter().collect();
                let limit = i64::try_from(remaining).unwrap_or(i64::MAX);
                let connection = self.journal.connections.reads();
                let rows = connection
                    .query(
                        &sql,
                        &[
                            &segment.log,
                            &(mark as i16),
                            &columns.first[0],
                            &columns.last[0],
                            &limit,
                        ],
                    )
                    .await;
                for row in rows.map_err(error::read)? {
                    places.push(RecordKey {
                        log: segment.log,
                        seq: seq(row.get(0)),
                        bytes: usize::try_from(row.get::<_, i32>(1)).unwrap_or(0),
                    });
                }
            }
        }
        Ok(places)
    }

    /// Reads the events of some records.
    async fn events(&self, places: &[RecordKey]) -> Result<Events, ReadError> {
        let columns: SegmentColumns = places
            .iter()
            .map(|place| super::segments::Segment {
                log: place.log,
                first: place.seq,
                last: place.seq,
            })
            .collect();
        let sql = "SELECT records.seq, records.at, records.form, records.body
                   FROM unnest($1::uuid[], $2::bigint[]) AS it(log, seq)
                   JOIN records ON records.log = it.log AND records.seq = it.seq";
        let connection = self.journal.connections.reads();
        let rows = connection.query(sql, &[&columns.log, &columns.first]).await;
        rows.map_err(error::read)?.iter().map(event_of).collect()
    }

    /// Reads the ends of turns, from the first of some turns to the turn after the last.
    async fn ends(&self, places: &[RecordKey]) -> Result<TurnEnds, ReadError> {
        let first = places.iter().map(|it| it.seq).min();
        let last = places.iter().map(|it| it.seq).max();
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(TurnEnds::default());
        };
        let next = self.next_turn(last).await?;
        let span = (first, next.unwrap_or(Seq(u64::MAX)));
        // Reverted turns between them count too: a turn ends before the next one begins.
        let sql = "SELECT marks.seq FROM unnest($1::uuid[], $2::bigint[], $3::bigint[])
                       AS it(log, first, last)
                   JOIN marks ON marks.log = it.log AND marks.kind = $4
                       AND marks.seq BETWEEN it.first AND it.last
                   ORDER BY marks.seq";
        let starts = self.query(sql, span, MarkKind::Turn).await?;
        let sql = "SELECT records.seq, records.at, records.form, records.body
                   FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS it(log, first, last)
                   JOIN marks ON marks.log = it.log AND marks.kind = $4
                       AND marks.seq BETWEEN it.first AND it.last
                   JOIN records ON records.log = marks.log AND records.seq = marks.seq
                   ORDER BY records.seq";
        let mut ends = Vec::new();
        for row in self.query(sql, span, MarkKind::TurnEnd).await? {
            let (seq, (at, event)) = event_of(&row)?;
            match event {
                Event::TurnEnded(it) => ends.push((seq, at, it.turn, it.end)),
                _ => return Err(corrupt(seq, "it ends no turn")),
            }
        }
        Ok(TurnEnds {
            starts: starts.iter().map(|row| seq(row.get(0))).collect(),
            ends,
        })
    }

    /// Returns where the turn after a record begins.
    async fn next_turn(&self, after: Seq) -> Result<Option<Seq>, ReadError> {
        let sql = "SELECT marks.seq FROM unnest($1::uuid[], $2::bigint[], $3::bigint[])
                       AS it(log, first, last)
                   JOIN LATERAL (SELECT seq FROM marks WHERE log = it.log AND kind = $4
                       AND seq BETWEEN it.first AND it.last ORDER BY seq LIMIT 1) AS marks ON true
                   ORDER BY marks.seq LIMIT 1";
        let span = (after.next(), Seq(u64::MAX));
        let rows = self.query(sql, span, MarkKind::Turn).await?;
        Ok(rows.first().map(|row| seq(row.get(0))))
    }

    /// Returns the range of a turn's records. Turns follow one another, so it extends to the next.
    async fn span(&self, turn: &TurnId) -> Result<Option<(Seq, Seq)>, ReadError> {
        let columns: SegmentColumns = self.segments.within(ALL).collect();
        let sql = format!(
            "SELECT marks.seq FROM unnest($1::uuid[], $2::bigint[], $3::bigint[])
                 AS it(log, first, last)
             JOIN marks ON marks.log = it.log AND {}
                 AND marks.seq BETWEEN it.first AND it.last
             ORDER BY marks.seq LIMIT 1",
            indexed("marks.turn", "$4")
        );
        let id = storable(turn.as_str());
        let connection = self.journal.connections.reads();
        let rows = connection
            .query(&sql, &[&columns.log, &columns.first, &columns.last, &id])
            .await;
        let rows = rows.map_err(error::read)?;
        let Some(from) = rows.first().map(|row| seq(row.get(0))) else {
            return Ok(None);
        };
        let next = self.next_turn(from).await?;
        Ok(Some((from, next.unwrap_or(Seq(u64::MAX)))))
    }

    /// Runs a query over the segments within a range, for the marks of a kind.
    async fn query(
        &self,
        sql: &str,
        span: (Seq, Seq),
        mark: MarkKind,
    ) -> Result<Vec<Row>, ReadError> {
        let columns: SegmentColumns = self.segments.within(span).collect();
        let connection = self.journal.connections.reads();
        let params: [super::connection::Param<'_>; 4] =
            [&columns.log, &columns.first, &columns.last, &(mark as i16)];
        connection.query(sql, &params).await.map_err(error::read)
    }
}

/// Decodes the number, time, form and body of a row.
fn event_of(row: &Row) -> Result<(Seq, (Timestamp, Event)), ReadError> {
    let number = seq(row.get(0));
    let event = event_row::event(number, row.get(2), row.get(3))?;
    Ok((number, (Timestamp(row.get(1)), event)))
}

/// Begins and ends of turns, ascending.
#[derive(Debug, Default)]
struct TurnEnds {
    starts: Vec<Seq>,
    ends: Vec<(Seq, Timestamp, TurnId, TurnEnd)>,
}

impl TurnEnds {
    /// Returns the end of a turn: its last one before the next turn begins.
    fn of(&self, from: Seq, turn: &TurnId) -> Option<(TurnEnd, Timestamp)> {
        let next = self.starts.partition_point(|start| *start <= from);
        let until = self.starts.get(next).copied().unwrap_or(Seq(u64::MAX));
        let mut ends = self.ends.iter().rev();
        let found = ends.find(|(at, _, id, _)| from < *at && *at < until && id == turn);
        found.map(|(_, at, _, end)| (end.clone(), *at))
    }
}
