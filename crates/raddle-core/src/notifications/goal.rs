//! Goals as they are on the wire.

use raddle_protocol as wire;
use raddle_protocol::Notification;

use super::count;
use crate::{Event, GoalStatus, Record, RecordBody, Thread, ThreadId, TurnId};

/// Returns the notification for a record that changed the goal.
pub(super) fn goal_notification(thread: &Thread, id: ThreadId, record: &Record) -> Notification {
    let turn = match &record.body {
        RecordBody::Event(event) => match &**event {
            Event::GoalSet(it) => it.turn.clone(),
            Event::TurnEnded(it) => Some(it.turn.clone()),
            _ => None,
        },
        RecordBody::Delta(_) => None,
    };
    goal_state(thread, id, turn)
}

/// Returns the state of the goal, for a new subscriber.
pub fn notification_of_goal(thread: &Thread) -> Option<Notification> {
    Some(goal_state(thread, thread.id()?, None))
}

fn goal_state(thread: &Thread, id: ThreadId, turn_id: Option<TurnId>) -> Notification {
    match goal_view(thread) {
        Some(goal) => wire::ThreadGoalUpdatedNotification {
            thread_id: id,
            turn_id,
            goal,
        }
        .into(),
        None => wire::ThreadGoalClearedNotification { thread_id: id }.into(),
    }
}

/// Converts a thread's goal to its form on the wire.
pub fn goal_view(thread: &Thread) -> Option<wire::ThreadGoal> {
    use wire::ThreadGoalStatus as Status;
    let goal = thread.goal()?;
    Some(wire::ThreadGoal {
        thread_id: thread.id()?,
        created_at: goal.created_at.seconds(),
        objective: goal.objective.clone(),
        status: match goal.status {
            GoalStatus::Active => Status::Active,
            GoalStatus::Paused => Status::Paused,
            GoalStatus::Blocked => Status::Blocked,
            GoalStatus::UsageLimited => Status::UsageLimited,
            GoalStatus::BudgetLimited => Status::BudgetLimited,
            GoalStatus::Complete => Status::Complete,
        },
        time_used_seconds: goal.ms_used / 1000,
        tokens_used: count(goal.tokens_used),
        updated_at: goal.updated_at.seconds(),
        token_budget: goal.token_budget.map(count),
    })
}
