//! Budgets: limits on the usage of turns and threads, and the usage so far.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the usage of turns and threads. An absent or null member keeps its value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Limits of each turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<BudgetLimits>,
    /// Limits of all turns of the thread together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<BudgetLimits>,
}

/// All limits of a turn or of a thread. An absent or null member means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetLimits {
    /// Maximum number of input and output tokens of model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub usd: Option<f64>,
    /// Maximum run time of turns in seconds, including time spent waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Maximum number of started tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
}

/// A budget and the amount spent of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetSpending {
    /// Whether the budget applies to each turn or to the thread.
    pub scope: BudgetScope,
    /// Unit of the budget.
    pub kind: BudgetKind,
    /// Amount spent; null when unknown, because the model's price is unknown.
    pub spent: Option<f64>,
    /// Maximum amount, in the unit of `kind`.
    pub limit: f64,
}

open_enum! {
    /// Scope of a budget.
    pub enum BudgetScope {
        /// One turn; each turn starts from zero.
        Turn = "turn",
        /// All turns of the thread together.
        Thread = "thread",
    }
}

open_enum! {
    /// Unit of a budget.
    pub enum BudgetKind {
        /// Input and output tokens of model calls.
        Tokens = "tokens",
        /// Cost in US dollars.
        Usd = "usd",
        /// Run time in seconds.
        Seconds = "seconds",
        /// Number of started tools.
        ToolCalls = "toolCalls",
    }
}
