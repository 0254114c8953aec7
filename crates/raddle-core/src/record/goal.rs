//! Goals that a thread works towards over several turns.

use serde::{Deserialize, Serialize};

use crate::TurnId;

/// A goal was set or changed. Tokens and time used so far stay counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalSet {
    /// Text of the goal.
    pub objective: String,
    /// Status of the goal.
    pub status: GoalStatus,
    /// Maximum number of tokens that the goal may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// Turn in which the model changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// Status of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum GoalStatus {
    /// In progress: when a turn succeeds, the next one begins by itself.
    Active,
    /// Paused until the user resumes it.
    Paused,
    /// The model cannot continue without help.
    Blocked,
    /// The vendor's quota is used up for now.
    UsageLimited,
    /// The token budget is used up.
    BudgetLimited,
    /// The goal was reached.
    Complete,
}
