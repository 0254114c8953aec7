//! Turns that begin without a client: with the queue's next input, or else for the goal.

use super::{Decision, Thread, goal, queue};
use crate::{BeginTurn, GoalStatus, ItemId, Refusal, Timestamp};

/// Reason for the next turn that begins without a client.
pub(super) enum NextTurn<'a> {
    Queued(&'a ItemId),
    Goal(&'a goal::Goal),
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
}

pub(super) fn begin(thread: &Thread, it: BeginTurn, now: Timestamp) -> Result<Decision, Refusal> {
    match thread.next_turn().ok_or(Refusal::NothingWaits)? {
        NextTurn::Queued(item) => queue::begin(thread, item, it, None, now),
        NextTurn::Goal(goal) => Ok(goal::begin(thread, goal, it)),
    }
}
