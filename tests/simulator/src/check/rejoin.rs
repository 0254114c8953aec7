//! A client's notifications add up to what is stored.

use raddle_core::{CursorStatus, Event, RecordBody, Seq};

use super::{Check, Oracle, broken};
use crate::client_view::{ClientView, ViewError};
use crate::store::Log;

const I1: &str = "I1 rejoin is exact";

/// Most ranges of lost numbers that a thread keeps in these runs.
pub const GAPS_MAX: usize = 3;

/// I1: notifications are consistent for a client that received all earlier ones.
pub fn i1_makes_sense(result: Result<(), ViewError>) -> Check {
    match result {
        Ok(()) => Ok(()),
        Err(error) => broken(I1, error),
    }
}

/// I1: a cursor needs a snapshot if its number was lost, never existed, or lies inside a text that
/// was saved again as a whole; any other cursor does not.
pub fn i1_cursor(
    oracle: &Oracle,
    log: &Log,
    owner_at: Seq,
    last_seq: Seq,
    cursor: CursorStatus,
) -> Check {
    if cursor == CursorStatus::Good && oracle.lost.contains(&last_seq) {
        return broken(
            I1,
            format!("{last_seq} was lost, and the client is not told so"),
        );
    }
    // A former owner knows less, and reports so.
    let current = owner_at == log.head;
    let gaps = oracle
        .stored_rows
        .values()
        .filter(|row| match &row.record.body {
            RecordBody::Event(event) => matches!(**event, Event::Owned(_)),
            RecordBody::Delta(_) => false,
        });
    let known = oracle.stored_rows.contains_key(&last_seq) && gaps.count() <= GAPS_MAX;
    let known = known && !oracle.is_amid_saved_text(last_seq);
    if cursor == CursorStatus::Expired && current && known {
        return broken(
            I1,
            format!("{last_seq} is stored, and the client is told it was lost"),
        );
    }
    Ok(())
}

/// I1: no record comes twice, and no stored record is left out.
pub fn i1_next(log: &Log, last_seq: Seq, next: Seq) -> Check {
    if next <= last_seq {
        return broken(I1, format!("{next} comes after {last_seq}"));
    }
    let from = log.rows.partition_point(|row| row.record.seq <= last_seq);
    match log.rows.get(from) {
        Some(row) if row.record.seq < next => broken(
            I1,
            format!(
                "{} was left out between {last_seq} and {next}",
                row.record.seq
            ),
        ),
        _ => Ok(()),
    }
}

/// I1: a client that received everything has the same view as one that never disconnected.
pub fn i1_picture(oracle: &Oracle, view: &ClientView) -> Check {
    match view.differs(&oracle.view) {
        Some(difference) => broken(
            I1,
            format!("a client at {} believes {difference}", oracle.fold.head()),
        ),
        None => Ok(()),
    }
}

impl Oracle {
    /// Whether a number lies between the start of an open text and its newest save.
    fn is_amid_saved_text(&self, seq: Seq) -> bool {
        self.items.values().any(|item| {
            item.open && item.began <= seq && item.saved.is_some_and(|saved| seq < saved)
        })
    }
}
