//! Changes of the goal: by a client, or by the model's report on it.

use super::{Decision, Thread};
use crate::{ClearGoal, Event, GoalSet, GoalStatus, RecordBody, Refusal, SetGoal};

pub(super) fn set(thread: &Thread, it: SetGoal) -> Result<Decision, Refusal> {
    let current = thread.goal.as_ref();
    let objective = it.objective.or_else(|| Some(current?.objective.clone()));
    let status = it.status.or_else(|| Some(current?.status));
    let token_budget = it.token_budget.or_else(|| current?.token_budget);
    let used = current.map_or(0, |goal| goal.tokens_used);
    let status = match status.unwrap_or(GoalStatus::Active) {
        GoalStatus::Active if token_budget.is_some_and(|budget| used >= budget) => {
            GoalStatus::BudgetLimited
        }
        status => status,
    };
    let set = GoalSet {
        objective: objective.ok_or(Refusal::NoGoal)?,
        status,
        token_budget,
        turn: None,
        principal: it.principal,
    };
    Ok(vec![Event::GoalSet(set).into()].into())
}

pub(super) fn clear(thread: &Thread, it: ClearGoal) -> Result<Decision, Refusal> {
    thread.goal.as_ref().ok_or(Refusal::NoGoal)?;
    let principal = it.principal;
    Ok(vec![Event::GoalCleared { principal }.into()].into())
}

/// Stores the model's report on the status of the goal.
pub(super) fn report_status(thread: &Thread, status: GoalStatus) -> Option<RecordBody> {
    let goal = thread.goal.as_ref().filter(|_| thread.has_active_goal())?;
    let set = GoalSet {
        objective: goal.objective.clone(),
        status,
        token_budget: goal.token_budget,
        turn: thread.turn.as_ref().map(|turn| turn.id.clone()),
        principal: None,
    };
    Some(Event::GoalSet(set).into())
}
