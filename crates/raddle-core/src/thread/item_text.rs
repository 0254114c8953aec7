//! Items that the model writes: their start, growth and end.

use super::{Decision, OpenTurn, Thread, closing};
use crate::{
    AppendText, CompleteItem, Delta, Event, Item, ItemStarted, ItemStatus, RecordBody, Refusal,
    StartItem, Timestamp,
};

/// Limit: text of one open item; beyond it, the rest is dropped.
///
/// A tool with more output stores the rest in a blob.
fn item_bytes_max() -> u64 {
    crate::bugs::bound(8 << 20, 1_300)
}

pub(super) fn start(thread: &Thread, it: StartItem, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = turn_of_call(thread, it.call)?;
    if thread.open_item(&it.item).is_some() {
        return Err(Refusal::ItemExists);
    }
    let item = new_item(it.item, it.body, now);
    Ok(vec![started(turn, item)].into())
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

pub(super) fn complete(
    thread: &Thread,
    it: CompleteItem,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let turn = turn_of_call(thread, it.call)?;
    let mut bodies = Vec::new();
    let mut item = match thread.open_item(&it.item) {
        Some(open) if !open.is_text() => return Err(Refusal::NoItem),
        Some(open) => open.item.clone(),
        // It had no text while it was open.
        None => {
            let item = new_item(it.item, it.body.clone(), now);
            bodies.push(started(turn, item.clone()));
            item
        }
    };
    item.status = ItemStatus::Completed;
    item.completed_at = Some(now);
    item.body = it.body;
    item.sealed = it.sealed;
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

pub(super) fn new_item(id: crate::ItemId, body: crate::ItemBody, now: Timestamp) -> Item {
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
