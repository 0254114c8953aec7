//! What every journal asks of records.

use raddle_core::{Event, Item, Record, Seq, TurnId};

/// Whether the numbers of the records rise and follow what is there.
pub(crate) fn rise(after: Seq, records: &[Record]) -> bool {
    let mut last = after;
    records.iter().all(|record| {
        let rises = last < record.seq;
        last = record.seq;
        rises
    })
}

/// The whole item that an event brings, and its turn.
pub(crate) fn item_of(event: &Event) -> Option<(&TurnId, &Item)> {
    match event {
        Event::InputAccepted(it) => Some((&it.turn, &it.item)),
        Event::ItemCompleted(it) => Some((&it.turn, &it.item)),
        _ => None,
    }
}
