//! Turns that begin without a client: with the queue's next input, or else for the goal.

use super::{Decision, Goal, Thread, queue};
use crate::{
    BeginTurn, CommandOutcome, Event, GoalStatus, InjectedItem, Input, ItemId, ItemsInjected,
    Refusal, Timestamp, TurnKind, TurnStarted,
};

/// Reason for the next turn that begins without a client.
pub(super) enum NextTurn<'a> {
    Queued(&'a ItemId),
    Goal(&'a Goal),
}

impl Thread {
    /// Returns the turn to begin now without a client, if any.
    pub(super) fn next_turn(&self) -> Option<NextTurn<'_>> {
        if self.turn.is_some() || self.deleted || self.archived {
            return None;
        }
        let queued = self.queue.first().filter(|_| !self.queue_rests);
        if let Some(queued) = queued {
            return Some(NextTurn::Queued(&queued.item));
        }
        let goal = self.goal.as_ref();
        let goal = goal.filter(|goal| goal.status == GoalStatus::Active);
        goal.map(NextTurn::Goal)
    }

    /// Returns the input of the turn that begins now without a client; empty if it has none.
    pub fn next_input(&self) -> &[Input] {
        let Some(NextTurn::Queued(item)) = self.next_turn() else {
            return &[];
        };
        let queued = self.queue.iter().find(|it| it.item == *item);
        queued.map_or(&[], |it| it.input.as_slice())
    }
}

pub(super) fn begin(thread: &Thread, it: BeginTurn, now: Timestamp) -> Result<Decision, Refusal> {
    match thread.next_turn().ok_or(Refusal::NothingWaits)? {
        NextTurn::Queued(item) => queue::begin(thread, item, it, None, now),
        NextTurn::Goal(goal) => Ok(begin_for_goal(thread, goal, it)),
    }
}

/// Starts a turn because the goal is not reached yet.
fn begin_for_goal(thread: &Thread, goal: &Goal, it: BeginTurn) -> Decision {
    let started = TurnStarted {
        turn: it.turn.clone(),
        kind: TurnKind::Work,
        principal: None,
        root: None,
        output_schema: None,
        reviewed: Vec::new(),
    };
    let mut bodies = vec![Event::TurnStarted(started).into()];
    bodies.extend(thread.changed_briefs(it.briefs));
    let text = reminder(goal);
    let injected = ItemsInjected {
        items: vec![InjectedItem::Note { text }],
        principal: None,
    };
    bodies.push(Event::ItemsInjected(injected).into());
    Decision {
        bodies,
        outcome: CommandOutcome::Started { turn: it.turn },
    }
}

/// Returns the note for the model at the start of such a turn.
fn reminder(goal: &Goal) -> String {
    let budget = match goal.token_budget {
        Some(budget) => format!(" of the {budget} it may use"),
        None => String::new(),
    };
    format!(
        "This thread has a goal, set by the user:\n\n<goal>\n{}\n</goal>\n\n{} tokens were used on it so far{budget}. \
         Go on working towards it, beginning with what is not done yet. Once it is reached, and you have checked that it is, \
         call update_goal with status \"complete\". If you cannot go on without help, say what is missing and call update_goal with \
         status \"blocked\". If neither is so, end your answer; you will be told to go on.",
        goal.objective, goal.tokens_used
    )
}
