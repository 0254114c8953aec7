//! What a client is told adds up to what is stored.

use raddle_core::{CursorStatus, Event, RecordBody, Seq};

use super::{Check, Oracle, broken};
use crate::client_view::{ClientView, ViewError};
use crate::store::Log;

const I1: &str = "I1 rejoin is exact";

/// How many stretches of lost numbers a thread remembers in these runs.
pub const GAPS_MAX: usize = 3;

/// I1: what is told makes sense to whoever heard all that was told before.
pub fn i1_makes_sense(heard: Result<(), ViewError>) -> Check {
    match heard {
        Ok(()) => Ok(()),
        Err(nonsense) => broken(I1, nonsense),
    }
}

/// I1: a client with a number that was lost, or that never was, or from the midst of a text that was stored
/// anew as a whole, needs a snapshot; any other does not.
pub fn i1_cursor(
    oracle: &Oracle,
    log: &Log,
    owner_at: Seq,
    seen: Seq,
    cursor: CursorStatus,
) -> Check {
    if cursor == CursorStatus::Good && oracle.lost.contains(&seen) {
        return broken(
            I1,
            format!("{seen} was lost, and the client is not told so"),
        );
    }
    // A former owner knows less, and says so.
    let current = owner_at == log.head;
    let gaps = oracle.ever.values().filter(|row| match &row.record.body {
        RecordBody::Event(event) => matches!(**event, Event::Owned(_)),
        RecordBody::Delta(_) => false,
    });
    let known = oracle.ever.contains_key(&seen) && gaps.count() <= GAPS_MAX;
    let known = known && !oracle.is_amid_saved_text(seen);
    if cursor == CursorStatus::Expired && current && known {
        return broken(
            I1,
            format!("{seen} is stored, and the client is told it was lost"),
        );
    }
    Ok(())
}

/// I1: nothing comes twice, and nothing that is there is left out.
pub fn i1_next(log: &Log, seen: Seq, next: Seq) -> Check {
    if next <= seen {
        return broken(I1, format!("{next} comes after {seen}"));
    }
    let from = log.rows.partition_point(|row| row.record.seq <= seen);
    match log.rows.get(from) {
        Some(row) if row.record.seq < next => broken(
            I1,
            format!("{} was left out between {seen} and {next}", row.record.seq),
        ),
        _ => Ok(()),
    }
}

/// I1: a client that has heard everything believes what someone does who never left.
pub fn i1_picture(oracle: &Oracle, believed: &ClientView) -> Check {
    match believed.differs(&oracle.picture) {
        Some(difference) => broken(
            I1,
            format!("a client at {} believes {difference}", oracle.fold.head()),
        ),
        None => Ok(()),
    }
}

impl Oracle {
    /// Whether a number lies between the beginning of an open text and its newest whole.
    fn is_amid_saved_text(&self, seen: Seq) -> bool {
        self.items.values().any(|item| {
            item.open && item.began <= seen && item.saved.is_some_and(|saved| seen < saved)
        })
    }
}
