//! Goals: a thread continues by itself until its goal is reached, or something blocks it.

use serde::{Deserialize, Serialize};

use crate::{Failure, FailureKind, GoalSet, GoalStatus, Timestamp, TurnEnd};

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
    /// Maximum number of tokens that the goal may use.
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
