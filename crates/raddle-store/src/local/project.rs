//! Projections: lists and pages are updated in the transaction that stores the records.

use raddle_core::{Event, Record, RecordBody, Seq, ThreadId};
use rusqlite::{Connection, Error, params};

use super::fence::{ThreadRow, as_i64};
use super::files::BlobFiles;
use super::kind_index::KindIndex;
use super::segments::{ScanOrder, Segments};
use super::{rowid, summary};
use crate::records::item_of;
use crate::reverted_ranges::RevertedRanges;

/// Updates the projections with appended records, and the thread's row accordingly.
pub(super) fn follow(
    transaction: &Connection,
    files: &BlobFiles,
    row: &mut ThreadRow,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let mut listed = false;
    for record in records {
        let RecordBody::Event(event) = &record.body else {
            continue;
        };
        listed |= event.is_listed();
        follow_event(transaction, row, event, record)?;
    }
    if listed {
        summary::follow(transaction, files, row, thread, records)?;
    }
    Ok(())
}

fn follow_event(
    transaction: &Connection,
    row: &mut ThreadRow,
    event: &Event,
    record: &Record,
) -> Result<(), Error> {
    let seq = record.seq;
    if item_of(event).is_some() {
        let (it, sum) = KindIndex::Item.advance(row, seq, Seq::ZERO);
        transaction
            .prepare_cached("INSERT INTO item (at, before, sum) VALUES (?1, ?2, ?3)")?
            .execute(params![it.at, as_i64(it.before), sum])?;
    }
    match event {
        Event::TurnStarted(started) => {
            let (it, sum) = KindIndex::Turn.advance(row, seq, Seq::ZERO);
            transaction
                .prepare_cached("INSERT INTO turn (at, before, sum, id) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![
                    it.at,
                    as_i64(it.before),
                    sum,
                    started.turn.as_str()
                ])?;
        }
        Event::TurnEnded(_) => {
            let (it, sum) = KindIndex::TurnEnd.advance(row, seq, Seq::ZERO);
            transaction
                .prepare_cached("INSERT INTO turn_end (at, before, sum) VALUES (?1, ?2, ?3)")?
                .execute(params![it.at, as_i64(it.before), sum])?;
        }
        Event::Reverted(reverted) => {
            let (it, sum) = KindIndex::Revert.advance(row, seq, reverted.at);
            transaction
                .prepare_cached("INSERT INTO cut (at, before, sum, since) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![it.at, as_i64(it.before), sum, as_i64(it.since)])?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the reverted ranges of a thread.
pub(super) fn reverted_ranges(
    connection: &Connection,
    segments: &Segments,
) -> Result<RevertedRanges, Error> {
    let all = (Seq::ZERO, rowid::SEQ_MAX);
    let mut ranges = RevertedRanges::default();
    for entry in segments.along(
        connection,
        KindIndex::Revert,
        all,
        ScanOrder::OldestFirst,
        usize::MAX,
    )? {
        ranges.revert(entry.since, entry.seq());
    }
    Ok(ranges)
}
