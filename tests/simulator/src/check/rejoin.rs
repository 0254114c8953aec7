//! What a client is told adds up to what is stored.

use raddle_core::{Body, Cursor, Event, Record, Seq, Thread};

use super::{Check, Oracle, broken};
use crate::store::Log;

const I1: &str = "I1 rejoin is exact";

/// How many stretches of lost numbers a thread remembers in these runs.
pub const GAPS_MAX: usize = 3;

/// I1: a client with a number that was lost, or that never was, needs a snapshot; any other does not.
pub fn i1_cursor(oracle: &Oracle, log: &Log, owner_at: Seq, seen: Seq, cursor: Cursor) -> Check {
    if cursor == Cursor::Good && oracle.lost.contains(&seen) {
        return broken(
            I1,
            format!("{seen} was lost, and the client is not told so"),
        );
    }
    // A former owner knows less, and says so.
    let current = owner_at == log.head;
    let gaps = oracle.ever.values().filter(|row| match &row.record.body {
        Body::Event(event) => matches!(**event, Event::Owned(_)),
        Body::Delta(_) => false,
    });
    let known = oracle.ever.contains_key(&seen) && gaps.count() <= GAPS_MAX;
    if cursor == Cursor::Expired && current && known {
        return broken(
            I1,
            format!("{seen} is stored, and the client is told it was lost"),
        );
    }
    Ok(())
}

/// I1: nothing comes twice, and nothing that is there is left out.
pub fn i1_next(log: &Log, seen: Seq, record: &Record) -> Check {
    if record.seq <= seen {
        return broken(I1, format!("{} comes after {seen}", record.seq));
    }
    let from = log.rows.partition_point(|row| row.record.seq <= seen);
    match log.rows.get(from) {
        Some(row) if row.record.seq < record.seq => broken(
            I1,
            format!(
                "{} was left out between {seen} and {}",
                row.record.seq, record.seq
            ),
        ),
        _ => Ok(()),
    }
}

/// I1: a client that has heard everything believes what is stored.
pub fn i1_fold(oracle: &Oracle, believed: &Thread) -> Check {
    if *believed != oracle.fold {
        return broken(
            I1,
            format!("a client at {} believes something else", believed.head()),
        );
    }
    Ok(())
}
