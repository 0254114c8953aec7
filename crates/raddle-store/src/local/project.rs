//! Lists and pages follow the records, in the transaction that stores them.

use raddle_core::ports::Summary;
use raddle_core::{Body, Event, Record, Seq, ThreadId, Timestamp};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::course::Course;
use super::fence::as_i64;
use super::key::{self, key};
use crate::cuts::Cuts;
use crate::records::item_of;

/// Where a list keeps a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum Shelf {
    /// Ordinary lists.
    Open = 0,
    /// Lists of archived threads.
    Archived = 1,
    /// No list: a copy that has not yet its own first record.
    Hidden = 2,
}

/// Takes in what was appended.
pub(super) fn follow(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let mut listed = false;
    for record in records {
        let Body::Event(event) = &record.body else {
            continue;
        };
        listed |= is_listed(event);
        follow_event(transaction, number, event, record)?;
    }
    if listed {
        follow_list(transaction, number, thread, records)?;
    }
    Ok(())
}

/// Whether a list may show something else after this. Most events are none of its business.
fn is_listed(event: &Event) -> bool {
    match event {
        Event::ThreadStarted(_)
        | Event::Forked(_)
        | Event::Reverted(_)
        | Event::SettingsChanged(_)
        | Event::Renamed(_)
        | Event::Archived { .. }
        | Event::Unarchived { .. }
        | Event::Deleted { .. }
        | Event::TurnStarted(_)
        | Event::InputAccepted(_) => true,
        Event::Owned(_)
        | Event::Briefed(_)
        | Event::Reserved(_)
        | Event::Released {}
        | Event::ModelCalled(_)
        | Event::ModelEnded(_)
        | Event::ItemStarted(_)
        | Event::ItemSaved(_)
        | Event::ToolStarted(_)
        | Event::ItemCompleted(_)
        | Event::RequestOpened(_)
        | Event::RequestResolved(_)
        | Event::PlanUpdated(_)
        | Event::DiffUpdated(_)
        | Event::Warned(_)
        | Event::InterruptAccepted(_)
        | Event::TurnEnded(_)
        | Event::Compacted(_)
        | Event::Remembered(_) => false,
    }
}

fn follow_list(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let before = summary(transaction, number)?;
    let mut after = before.clone();
    for record in records {
        Summary::fold(&mut after, record);
    }
    match (before, after) {
        (None, None) => Ok(()),
        (Some(_), None) => {
            transaction.execute("DELETE FROM summary WHERE number = ?1", [number])?;
            Ok(())
        }
        (before, Some(mut after)) => {
            // The head is read from where the fence keeps it.
            after.head = before.as_ref().map_or(Seq::ZERO, |it| it.head);
            if before.as_ref() == Some(&after) {
                return Ok(());
            }
            write_summary(transaction, number, thread, &after)
        }
    }
}

fn follow_event(
    transaction: &Connection,
    number: i64,
    event: &Event,
    record: &Record,
) -> Result<(), Error> {
    let at = key(number, record.seq);
    if item_of(event).is_some() {
        transaction
            .prepare_cached("INSERT INTO item (at) VALUES (?1)")?
            .execute([at])?;
    }
    match event {
        Event::TurnStarted(it) => {
            transaction
                .prepare_cached("INSERT INTO turn (at, id) VALUES (?1, ?2)")?
                .execute(params![at, it.turn.as_str()])?;
        }
        Event::TurnEnded(_) => {
            transaction
                .prepare_cached("INSERT INTO turn_end (at) VALUES (?1)")?
                .execute([at])?;
        }
        Event::Reverted(it) => {
            transaction
                .prepare_cached("INSERT INTO cut (at, since) VALUES (?1, ?2)")?
                .execute([at, as_i64(it.at)])?;
        }
        _ => {}
    }
    Ok(())
}

/// What of a thread no longer counts.
pub(super) fn cuts(connection: &Connection, course: &Course) -> Result<Cuts, Error> {
    let mut statement = connection
        .prepare_cached("SELECT at, since FROM cut WHERE at BETWEEN ?1 AND ?2 ORDER BY at")?;
    let mut cuts = Cuts::default();
    for part in course.parts(Seq::ZERO, key::SEQ_MAX) {
        let mut rows = statement.query(part.keys())?;
        while let Some(row) = rows.next()? {
            let since = Seq(row.get::<_, i64>(1)?.unsigned_abs());
            cuts.cut(since, key::seq(row.get(0)?));
        }
    }
    Ok(cuts)
}

/// The columns that [`read_summary`] reads, of `summary`.
pub(super) const SUMMARY: &str =
    "number, id, shelf, recency_at, created_at, turns, cwd, name, preview";

/// Reads a summary without its head, and the thread's number.
pub(super) fn read_summary(row: &rusqlite::Row<'_>) -> Result<(i64, Summary), Error> {
    let id: [u8; 16] = row.get(1)?;
    let summary = Summary {
        thread: uuid::Uuid::from_bytes(id).into(),
        archived: row.get::<_, i64>(2)? == Shelf::Archived as i64,
        recency_at: Timestamp(row.get(3)?),
        created_at: Timestamp(row.get(4)?),
        turns: row.get::<_, i64>(5)?.unsigned_abs(),
        cwd: row.get(6)?,
        name: row.get(7)?,
        preview: row.get(8)?,
        head: Seq::ZERO,
    };
    Ok((row.get(0)?, summary))
}

fn summary(connection: &Connection, number: i64) -> Result<Option<Summary>, Error> {
    let sql = format!("SELECT {SUMMARY} FROM summary WHERE number = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row([number], read_summary).optional()?;
    Ok(found.map(|(_, summary)| summary))
}

/// Keeps what lists show of a thread.
pub(super) fn write_summary(
    transaction: &Connection,
    number: i64,
    thread: ThreadId,
    summary: &Summary,
) -> Result<(), Error> {
    let shelf = if summary.thread != thread {
        Shelf::Hidden
    } else if summary.archived {
        Shelf::Archived
    } else {
        Shelf::Open
    };
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO summary
             (number, id, shelf, recency_at, created_at, turns, cwd, name, preview)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            number,
            summary.thread.as_uuid().as_bytes(),
            shelf as i64,
            summary.recency_at.0,
            summary.created_at.0,
            i64::try_from(summary.turns).unwrap_or(i64::MAX),
            summary.cwd,
            summary.name,
            summary.preview,
        ])?;
    Ok(())
}
