//! What every journal asks of records.

use raddle_core::{Event, Item, LEVEL, Record, Seq, TurnId};

/// Whether the numbers of the records rise and follow what is there.
pub(crate) fn rise(after: Seq, records: &[Record]) -> bool {
    let mut last = after;
    records.iter().all(|record| {
        let rises = last < record.seq;
        last = record.seq;
        rises
    })
}

/// An event from its JSON. What is known to be what was written and still cannot be read, or comes from an
/// owner that may mean more by its words than we know, was written by a newer version.
pub(crate) fn decode(json: &[u8]) -> Result<Event, String> {
    let event: Event = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    match &event {
        Event::Owned(it) if it.level > LEVEL => Err(format!(
            "its owner, version {:?}, writes level {}",
            it.version, it.level
        )),
        _ => Ok(event),
    }
}

/// Whether a thread whose newest event is this was deleted; nothing if the one before it says. What a deletion is
/// remembered by comes after it.
pub(crate) fn says_deleted(event: &Event) -> Option<bool> {
    match event {
        Event::Deleted { .. } => Some(true),
        Event::Remembered(_) => None,
        _ => Some(false),
    }
}

/// The whole item that an event brings, and its turn.
pub(crate) fn item_of(event: &Event) -> Option<(&TurnId, &Item)> {
    match event {
        Event::InputAccepted(it) => Some((&it.turn, &it.item)),
        Event::ItemCompleted(it) => Some((&it.turn, &it.item)),
        _ => None,
    }
}
