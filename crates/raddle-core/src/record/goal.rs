//! Goals: what a thread works towards over several turns.

use serde::{Deserialize, Serialize};

use crate::TurnId;

/// A thread was given a goal, or its goal changed. What was used on it so far stays counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalSet {
    /// What is to be reached.
    pub objective: String,
    /// Where it stands.
    pub status: GoalStatus,
    /// The most tokens it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_budget: Option<u64>,
    /// The turn in which the model changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// Where a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum GoalStatus {
    /// It is worked on: when a turn ends well, the next one begins by itself.
    Active,
    /// It rests until someone takes it up again.
    Paused,
    /// The model cannot go on without help.
    Blocked,
    /// The vendor allows no more for now.
    UsageLimited,
    /// It has used all it may.
    BudgetLimited,
    /// It has been reached.
    Complete,
}
