//! Checks and projections of records that every journal needs.

use raddle_core::{Event, Item, LEVEL, Record, Seq, TurnId};

/// Whether the numbers of the records ascend from the current head.
pub(crate) fn are_ascending(after: Seq, records: &[Record]) -> bool {
    let mut last = after;
    records.iter().all(|record| {
        let rises = last < record.seq;
        last = record.seq;
        rises
    })
}

/// Decodes an event from intact JSON. An error means that a newer version wrote it: its JSON is
/// unknown, or its owner writes a higher level.
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

/// Whether a thread whose newest event is this was deleted. Returns `None` for a `Remembered`
/// event, which may follow a deletion: then the event before it decides.
pub(crate) fn is_deletion(event: &Event) -> Option<bool> {
    match event {
        Event::Deleted { .. } => Some(true),
        Event::Remembered(_) => None,
        _ => Some(false),
    }
}

/// Returns the whole item that an event holds, and its turn.
pub(crate) fn item_of(event: &Event) -> Option<(&TurnId, &Item)> {
    match event {
        Event::InputAccepted(it) => Some((&it.turn, &it.item)),
        Event::ItemCompleted(it) => Some((&it.turn, &it.item)),
        _ => None,
    }
}
