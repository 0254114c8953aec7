//! The model summarised the history: from here on its context begins with the summary.

use super::{Decision, Thread, closing, item_text};
use crate::{
    Compact, Compacted, Event, ItemBody, ItemStarted, ItemStatus, Purpose, Refusal, Timestamp,
};

pub(super) fn decide(thread: &Thread, it: Compact, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = item_text::turn_of_call(thread, it.call)?;
    if turn.model.map(|model| model.purpose) != Some(Purpose::Compact) {
        return Err(Refusal::StaleCall);
    }
    let item = item_text::new_item(it.item, ItemBody::Compaction {}, now);
    let mut last = item.clone();
    last.status = ItemStatus::Completed;
    last.completed_at = Some(now);
    let started = ItemStarted {
        turn: turn.id.clone(),
        item,
        gate: None,
        ruling: None,
    };
    let compacted = Compacted {
        turn: turn.id.clone(),
        summary: it.summary,
    };
    Ok(vec![
        Event::ItemStarted(started).into(),
        closing::completed(turn, last),
        Event::Compacted(compacted).into(),
    ]
    .into())
}
