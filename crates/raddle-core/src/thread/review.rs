//! Reviews: turns with items at their start and end.

use super::{Decision, OpenTurn, Thread, item_text};
use crate::review::hunks_of_findings;
use crate::{
    CommandOutcome, Event, Item, ItemBody, ItemCompleted, ItemId, ItemStarted, ItemStatus,
    RecordBody, Refusal, Review, StartReview, Timestamp, TurnId, TurnKind, TurnStarted,
};

pub(super) fn decide(
    thread: &Thread,
    it: StartReview,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    if thread.turn.is_some() {
        return Err(Refusal::TurnRunning);
    }
    let started = TurnStarted {
        turn: it.turn.clone(),
        kind: TurnKind::Review,
        principal: it.principal,
        root: None,
        output_schema: None,
        reviewed: it.hunks,
    };
    let entered = ItemBody::ReviewEntered(Review {
        text: it.text,
        prompt: Some(it.prompt),
        hunks: Vec::new(),
    });
    let mut bodies = vec![Event::TurnStarted(started).into()];
    bodies.extend(thread.changed_briefs(it.briefs));
    bodies.extend(instant_item(&it.turn, it.item, entered, now));
    Ok(Decision {
        bodies,
        outcome: CommandOutcome::Started { turn: it.turn },
    })
}

/// Returns the item that ends a review, before its turn ends in any way.
pub(super) fn exit_review(thread: &Thread, turn: &OpenTurn, now: Timestamp) -> Vec<RecordBody> {
    if !turn.reviewing {
        return Vec::new();
    }
    let answer = turn.answer.as_deref().map(|item| &item.body);
    let text = match answer {
        Some(ItemBody::AgentMessage(message)) => message.text.clone(),
        _ => String::new(),
    };
    let cwd = &thread.settings.cwd;
    let hunks = hunks_of_findings(&text, &turn.reviewed, &[cwd, thread.settings.real(cwd)]);
    let exited = ItemBody::ReviewLeft(Review {
        text,
        prompt: None,
        hunks,
    });
    // The id must not be random, and a turn ends only once.
    let item = format!("{}-reviewed", turn.id).as_str().into();
    instant_item(&turn.id, item, exited, now)
}

/// Returns the events of an item that begins and ends at once.
fn instant_item(turn: &TurnId, id: ItemId, body: ItemBody, now: Timestamp) -> Vec<RecordBody> {
    let item = item_text::new_item(id, body, now);
    let last = Item {
        status: ItemStatus::Completed,
        completed_at: Some(now),
        ..item.clone()
    };
    let started = ItemStarted {
        turn: turn.clone(),
        item,
        gate: None,
        ruling: None,
    };
    let completed = ItemCompleted {
        turn: turn.clone(),
        item: last,
    };
    vec![
        Event::ItemStarted(started).into(),
        Event::ItemCompleted(completed).into(),
    ]
}
