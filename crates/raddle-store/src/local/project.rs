//! Lists and pages follow the records, in the transaction that stores them.

use raddle_core::{Body, Event, Record, Seq, ThreadId};
use rusqlite::{Connection, Error, params};

use super::course::{Course, Order};
use super::fence::{Row, as_i64};
use super::files::Files;
use super::trail::Trail;
use super::{key, summary};
use crate::cuts::Cuts;
use crate::records::item_of;

/// Takes in what was appended, and changes the thread's row as that asks for.
pub(super) fn follow(
    transaction: &Connection,
    files: &Files,
    row: &mut Row,
    thread: ThreadId,
    records: &[Record],
) -> Result<(), Error> {
    let mut listed = false;
    for record in records {
        let Body::Event(event) = &record.body else {
            continue;
        };
        listed |= event.is_change();
        follow_event(transaction, row, event, record)?;
    }
    if listed {
        summary::follow(transaction, files, row, thread, records)?;
    }
    Ok(())
}

fn follow_event(
    transaction: &Connection,
    row: &mut Row,
    event: &Event,
    record: &Record,
) -> Result<(), Error> {
    let seq = record.seq;
    if item_of(event).is_some() {
        let (it, sum) = Trail::Item.go_on(row, seq, Seq::ZERO);
        transaction
            .prepare_cached("INSERT INTO item (at, before, sum) VALUES (?1, ?2, ?3)")?
            .execute(params![it.at, as_i64(it.before), sum])?;
    }
    match event {
        Event::TurnStarted(started) => {
            let (it, sum) = Trail::Turn.go_on(row, seq, Seq::ZERO);
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
            let (it, sum) = Trail::TurnEnd.go_on(row, seq, Seq::ZERO);
            transaction
                .prepare_cached("INSERT INTO turn_end (at, before, sum) VALUES (?1, ?2, ?3)")?
                .execute(params![it.at, as_i64(it.before), sum])?;
        }
        Event::Reverted(reverted) => {
            let (it, sum) = Trail::Cut.go_on(row, seq, reverted.at);
            transaction
                .prepare_cached("INSERT INTO cut (at, before, sum, since) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![it.at, as_i64(it.before), sum, as_i64(it.since)])?;
        }
        _ => {}
    }
    Ok(())
}

/// What of a thread no longer counts.
pub(super) fn cuts(connection: &Connection, course: &Course) -> Result<Cuts, Error> {
    let all = (Seq::ZERO, key::SEQ_MAX);
    let mut cuts = Cuts::default();
    for entry in course.along(connection, Trail::Cut, all, Order::OldestFirst, usize::MAX)? {
        cuts.cut(entry.since, entry.seq());
    }
    Ok(cuts)
}
