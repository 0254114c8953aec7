//! The queue: input that waits, and becomes a turn when none runs.

use super::queued_input::bytes;
use super::{Decision, QueuedInput, Thread, start_turn};
use crate::{
    BeginTurn, ChangeQueued, Enqueue, Event, Input, InputMessage, InputQueued, InputUnqueued,
    ItemId, QueueReordered, Refusal, ReorderQueue, StartQueued, StartTurn, Timestamp, TurnKind,
    Unqueue,
};

/// Maximum number of entries in the queue. `BYTES_MAX` limits their stored size.
fn entries_max() -> usize {
    crate::bugs::bound(100, 3)
}
/// Limit: input in one thread's queue, with at most 100 entries; beyond it, the server rejects the
/// request with -32600.
const BYTES_MAX: usize = 8 << 20;

impl Thread {
    /// Returns the queued input, the next first.
    pub fn queue(&self) -> &[QueuedInput] {
        &self.queue
    }

    fn queued(&self, item: &ItemId) -> Result<&QueuedInput, Refusal> {
        let mut queue = self.queue.iter();
        queue
            .find(|queued| queued.item == *item)
            .ok_or(Refusal::NotQueued)
    }

    /// Checks that there is capacity for this input, in place of the entry with that id.
    fn check_capacity(&self, item: &ItemId, input: &[Input]) -> Result<(), Refusal> {
        let others = || self.queue.iter().filter(|queued| queued.item != *item);
        let queued_bytes: usize = others().map(|queued| queued.bytes).sum();
        if input.is_empty() {
            Err(Refusal::EmptyInput)
        } else if others().count() >= entries_max() || queued_bytes + bytes(input) > BYTES_MAX {
            Err(Refusal::QueueFull)
        } else {
            Ok(())
        }
    }
}

pub(super) fn enqueue(thread: &Thread, it: Enqueue) -> Result<Decision, Refusal> {
    let Enqueue { message, principal } = it;
    if thread.queued(&message.item).is_ok() {
        return Err(Refusal::ItemExists);
    }
    thread.check_capacity(&message.item, &message.input)?;
    let queued = InputQueued {
        item: message.item,
        input: message.input,
        client_id: message.client_id,
        principal,
    };
    Ok(vec![Event::InputQueued(queued).into()].into())
}

pub(super) fn change(thread: &Thread, it: ChangeQueued) -> Result<Decision, Refusal> {
    let queued = thread.queued(&it.item)?;
    thread.check_capacity(&it.item, &it.input)?;
    let changed = InputQueued {
        item: it.item,
        input: it.input,
        client_id: queued.client_id.clone(),
        principal: it.principal,
    };
    Ok(vec![Event::InputQueued(changed).into()].into())
}

pub(super) fn unqueue(thread: &Thread, it: Unqueue) -> Result<Decision, Refusal> {
    thread.queued(&it.item)?;
    let unqueued = InputUnqueued {
        item: it.item,
        principal: it.principal,
    };
    Ok(vec![Event::InputUnqueued(unqueued).into()].into())
}

pub(super) fn reorder(thread: &Thread, it: ReorderQueue) -> Result<Decision, Refusal> {
    let ReorderQueue { items, principal } = it;
    let current: Vec<&ItemId> = thread.queue.iter().map(|queued| &queued.item).collect();
    if items.iter().eq(current.iter().copied()) {
        return Ok(Vec::new().into());
    }
    let (mut old, mut new) = (current, items.iter().collect::<Vec<_>>());
    old.sort();
    new.sort();
    if old != new {
        return Err(Refusal::OtherQueue);
    }
    let reordered = QueueReordered { items, principal };
    Ok(vec![Event::QueueReordered(reordered).into()].into())
}

pub(super) fn start(thread: &Thread, it: StartQueued, now: Timestamp) -> Result<Decision, Refusal> {
    if thread.turn.is_some() {
        return Err(Refusal::TurnRunning);
    }
    let next = thread.queue.first().map(|queued| &queued.item);
    let item = it.item.as_ref().or(next).ok_or(Refusal::NotQueued)?;
    let begin = BeginTurn {
        turn: it.turn,
        briefs: it.briefs,
    };
    self::begin(thread, item, begin, it.principal, now)
}

/// Removes input from the queue and starts a turn with it, in one step.
pub(super) fn begin(
    thread: &Thread,
    item: &ItemId,
    it: BeginTurn,
    principal: Option<String>,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let queued = thread.queued(item)?.clone();
    let unqueued = InputUnqueued {
        item: queued.item.clone(),
        principal,
    };
    let start = StartTurn {
        turn: it.turn,
        kind: TurnKind::Work,
        message: Some(InputMessage {
            item: queued.item,
            input: queued.input,
            client_id: queued.client_id,
            hook_prompt: None,
        }),
        change: Box::default(),
        briefs: it.briefs,
        principal: queued.principal,
        root: None,
        output_schema: None,
    };
    let mut decision = start_turn::decide(thread, start, now)?;
    let unqueued = Event::InputUnqueued(unqueued).into();
    decision.bodies.insert(0, unqueued);
    Ok(decision)
}
