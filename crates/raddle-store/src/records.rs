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
pub(crate) fn decode(json: &[u8]) -> Result<Event, NewerEventError> {
    let event: Event = serde_json::from_slice(json)?;
    match event {
        Event::Owned(it) if it.level > LEVEL => Err(NewerEventError::Level {
            version: it.version,
            level: it.level,
        }),
        event => Ok(event),
    }
}

/// Reason why this version cannot read an intact event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NewerEventError {
    /// Its JSON is unknown.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Its owner writes a higher level.
    #[error("its owner, version {version:?}, writes level {level}")]
    Level { version: String, level: u32 },
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
