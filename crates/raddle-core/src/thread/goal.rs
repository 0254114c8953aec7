//! Goals: a thread continues by itself until its goal is reached, or something blocks it.

use serde::{Deserialize, Serialize};

use super::{Decision, Thread};
use crate::{
    BeginTurn, ClearGoal, CommandOutcome, Event, Failure, FailureKind, GoalSet, GoalStatus,
    InjectedItem, ItemsInjected, RecordBody, Refusal, SetGoal, Timestamp, TurnEnd, TurnKind,
    TurnStarted,
};

/// Limit: turns that a goal gets without a request of a client about it; beyond it, the goal is
/// paused.
fn turns_max() -> u32 {
    crate::bugs::bound(100, 3)
}

/// The goal of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// Text of the goal.
    pub objective: String,
    /// Status of the goal.
    pub status: GoalStatus,
    /// Most tokens that the goal may use.
    pub token_budget: Option<u64>,
    /// Tokens used so far.
    pub tokens_used: u64,
    /// Time of its turns, in milliseconds.
    pub ms_used: i64,
    /// Time at which it was set.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Whether the running turn counts towards the goal.
    counts: bool,
    /// Turns since the last command of a client about it.
    turns: u32,
}

impl Goal {
    pub(super) fn new(at: Timestamp) -> Self {
        Self {
            objective: String::new(),
            status: GoalStatus::Active,
            token_budget: None,
            tokens_used: 0,
            ms_used: 0,
            created_at: at,
            updated_at: at,
            counts: false,
            turns: 0,
        }
    }

    fn is_spent(&self) -> bool {
        self.token_budget
            .is_some_and(|budget| self.tokens_used >= budget)
    }

    /// Stores a change of the goal, while a turn runs or not.
    pub(super) fn set(&mut self, it: &GoalSet, runs: bool, at: Timestamp) {
        self.objective.clone_from(&it.objective);
        self.status = it.status;
        self.token_budget = it.token_budget;
        self.updated_at = at;
        self.counts |= runs && it.status == GoalStatus::Active;
        if it.turn.is_none() {
            self.turns = 0;
        }
    }

    /// Counts a turn that began.
    pub(super) fn turn_began(&mut self) {
        if self.status == GoalStatus::Active {
            self.counts = true;
            self.turns += 1;
        }
    }

    /// Adds the tokens of a model call.
    pub(super) fn used(&mut self, tokens: u64) {
        if self.counts {
            self.tokens_used = self.tokens_used.saturating_add(tokens);
        }
    }

    /// Counts a turn that ended. Returns whether it counted towards the goal.
    pub(super) fn turn_ended(&mut self, end: &TurnEnd, ms: i64, at: Timestamp) -> bool {
        if !std::mem::take(&mut self.counts) {
            return false;
        }
        self.ms_used += ms.max(0);
        self.updated_at = at;
        if self.status == GoalStatus::Active {
            self.status = match end {
                TurnEnd::Completed {} if self.is_spent() => GoalStatus::BudgetLimited,
                TurnEnd::Completed {} if self.turns < turns_max() => GoalStatus::Active,
                TurnEnd::Failed(Failure {
                    kind: FailureKind::UsageLimit,
                    ..
                }) => GoalStatus::UsageLimited,
                TurnEnd::Completed {} | TurnEnd::Failed(_) | TurnEnd::Interrupted(_) => {
                    GoalStatus::Paused
                }
            };
        }
        true
    }
}

impl Thread {
    /// Goal of the thread, if it has one.
    pub fn goal(&self) -> Option<&Goal> {
        self.goal.as_ref()
    }

    /// Whether the goal is active, so that the model may report its status.
    pub fn has_active_goal(&self) -> bool {
        self.goal
            .as_ref()
            .is_some_and(|goal| goal.status == GoalStatus::Active)
    }
}

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

/// Starts a turn because the goal is not reached yet.
pub(super) fn begin(thread: &Thread, goal: &Goal, it: BeginTurn) -> Decision {
    let started = TurnStarted {
        turn: it.turn.clone(),
        kind: TurnKind::Work,
        principal: None,
        root: None,
        output_schema: None,
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
