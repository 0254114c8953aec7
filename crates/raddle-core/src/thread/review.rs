//! A review: a turn that shows where it begins and where it ends.

use super::{Decision, OpenTurn, Thread, item_text};
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
    };
    let entered = ItemBody::ReviewEntered(Review {
        text: it.text,
        prompt: Some(it.prompt),
    });
    let mut bodies = vec![Event::TurnStarted(started).into()];
    bodies.extend(thread.news(it.briefs));
    bodies.extend(at_once(&it.turn, it.item, entered, now));
    Ok(Decision {
        bodies,
        outcome: CommandOutcome::Started { turn: it.turn },
    })
}

/// What is said of a review before its turn ends, however that ends.
pub(super) fn exit_review(turn: &OpenTurn, now: Timestamp) -> Vec<RecordBody> {
    if !turn.reviewing {
        return Vec::new();
    }
    let answer = turn.answer.as_deref().map(|item| &item.body);
    let text = match answer {
        Some(ItemBody::AgentMessage(message)) => message.text.clone(),
        _ => String::new(),
    };
    let left = ItemBody::ReviewLeft(Review { text, prompt: None });
    // Nothing here may be made up by chance, and a turn ends once.
    let item = format!("{}-reviewed", turn.id).as_str().into();
    at_once(&turn.id, item, left, now)
}

/// An item that begins and ends at once.
fn at_once(turn: &TurnId, id: ItemId, body: ItemBody, now: Timestamp) -> Vec<RecordBody> {
    let item = item_text::fresh(id, body, now);
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
