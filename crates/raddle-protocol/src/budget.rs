//! Budgets: what turns and threads may use, and have used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What turns and threads may use. A member that is left out or null stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// What each turn may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<BudgetLimits>,
    /// What all turns of the thread may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<BudgetLimits>,
}

/// All limits of a turn or of a thread. What is left out or null has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLimits {
    /// Tokens that calls of the model read and write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What they cost, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub usd: Option<f64>,
    /// Time while turns run, whatever they wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Tools that are started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
}

/// A budget, and what is spent of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetSpending {
    /// Whose it is.
    pub scope: BudgetScope,
    /// What it counts.
    pub kind: BudgetKind,
    /// How much is spent; null when that cannot be told, because the model's price is not known.
    pub spent: Option<f64>,
    /// Of how much.
    pub limit: f64,
}

open_enum! {
    /// Whose a budget is.
    pub enum BudgetScope {
        /// Each turn's, which begins anew.
        Turn = "turn",
        /// The thread's, all its turns together.
        Thread = "thread",
    }
}

open_enum! {
    /// What a budget counts.
    pub enum BudgetKind {
        /// Tokens.
        Tokens = "tokens",
        /// Dollars.
        Usd = "usd",
        /// Seconds.
        Seconds = "seconds",
        /// Tools that were started.
        ToolCalls = "toolCalls",
    }
}
