//! Items that the model writes: their start, growth and end.

use super::{Decision, OpenTurn, Thread, closing};
use crate::{
    AppendText, Delta, Event, Item, ItemBody, ItemId, ItemStarted, ItemStatus, ItemUpdate,
    RecordBody, Refusal, Sealed, Timestamp, UpdateItem,
};

/// Limit: text of one open item; beyond it, the rest is dropped.
///
/// A tool with more output stores the rest in a blob.
fn item_bytes_max() -> u64 {
    crate::bugs::bound(8 << 20, 1_300)
}

pub(super) fn update(thread: &Thread, it: UpdateItem, now: Timestamp) -> Result<Decision, Refusal> {
    match it.update {
        ItemUpdate::Started(item, body) => {
            let turn = turn_of_call(thread, it.call)?;
            start(thread, turn, new_item(item, *body, now))
        }
        // The texts of a call are closed when it ends, so an open item is one of the running call.
        ItemUpdate::Text(text) => append(thread, text),
        ItemUpdate::Completed(item, body, sealed) => {
            let turn = turn_of_call(thread, it.call)?;
            complete(thread, turn, item, *body, sealed, now)
        }
    }
}

fn start(thread: &Thread, turn: &OpenTurn, item: Item) -> Result<Decision, Refusal> {
    match thread.open_item(&item.id) {
        Some(_) => Err(Refusal::ItemExists),
        None => Ok(vec![started(turn, item)].into()),
    }
}

/// Appends text to an open item: the model's, or a tool's output.
pub(super) fn append(thread: &Thread, it: AppendText) -> Result<Decision, Refusal> {
    let open = match thread.open_item(&it.item) {
        Some(open) => open,
        None if crate::bugs::planted(crate::bugs::Bug::OrphanDelta) => {
            let delta = Delta {
                item: it.item,
                part: it.part,
                offset: 0,
                text: it.text,
            };
            return Ok(vec![delta.into()].into());
        }
        None => return Err(Refusal::NoItem),
    };
    if open.bytes() + it.text.len() as u64 > item_bytes_max() {
        return Err(Refusal::ItemFull);
    }
    if it.text.is_empty() {
        return Ok(Vec::new().into());
    }
    let mut offset = open.texts.get(&it.part).map_or(0, String::len) as u64;
    let mut rest = it.text.as_str();
    let mut deltas = Vec::new();
    while !rest.is_empty() {
        let (text, more) = rest.split_at(rest.floor_char_boundary(Delta::BYTES_MAX));
        let delta = Delta {
            item: it.item.clone(),
            part: it.part,
            offset,
            text: text.to_owned(),
        };
        offset += text.len() as u64;
        deltas.push(delta.into());
        rest = more;
    }
    Ok(deltas.into())
}

fn complete(
    thread: &Thread,
    turn: &OpenTurn,
    id: ItemId,
    body: ItemBody,
    sealed: Option<Sealed>,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let mut bodies = Vec::new();
    let mut item = match thread.open_item(&id) {
        Some(open) if !open.is_text() => return Err(Refusal::NoItem),
        Some(open) => open.item.clone(),
        // It had no text while it was open.
        None => {
            let item = new_item(id, body.clone(), now);
            bodies.push(started(turn, item.clone()));
            item
        }
    };
    item.status = ItemStatus::Completed;
    item.completed_at = Some(now);
    item.body = body;
    item.sealed = sealed;
    bodies.push(closing::completed(turn, item));
    Ok(bodies.into())
}

/// Returns the turn, if this model call is the running one.
pub(super) fn turn_of_call(thread: &Thread, call: u32) -> Result<&OpenTurn, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::StaleCall)?;
    match turn.model {
        Some(model) if model.call == call => Ok(turn),
        _ => Err(Refusal::StaleCall),
    }
}

pub(super) fn new_item(id: ItemId, body: ItemBody, now: Timestamp) -> Item {
    Item {
        id,
        status: ItemStatus::InProgress,
        body,
        call: None,
        output: None,
        sealed: None,
        started_at: now,
        completed_at: None,
    }
}

fn started(turn: &OpenTurn, item: Item) -> RecordBody {
    Event::ItemStarted(ItemStarted {
        turn: turn.id.clone(),
        item,
        gate: None,
        ruling: None,
    })
    .into()
}
