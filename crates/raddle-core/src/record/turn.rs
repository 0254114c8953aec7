//! Turns, and the model calls in them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Blob, Failure, Item, ReviewedHunk, Route, Spending, is_false};
use crate::{ItemId, Timestamp, TurnId};

/// A turn began, with or without input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted {
    /// Id of the turn.
    pub turn: TurnId,
    /// Purpose of the turn.
    pub kind: TurnKind,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Turn that this one descends from; `None` means itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<TurnId>,
    /// JSON Schema that its last message must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hunks of the diff under review, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewed: Vec<ReviewedHunk>,
}

/// Purpose of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnKind {
    /// Answers input of the user.
    Work,
    /// Reviews code on request of the user.
    Review,
    /// Summarises the history of the thread.
    Compaction,
    /// Runs a user command.
    Shell,
}

/// A turn accepted input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputAccepted {
    /// Id of the turn.
    pub turn: TurnId,
    /// The complete message of the user.
    pub item: Item,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// The model is about to be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCalled {
    /// Id of the turn.
    pub turn: TurnId,
    /// Number of this call in its thread, counted from 1; every attempt has its own.
    pub call: u32,
    /// Number of this attempt at the same call, counted from 1.
    pub attempt: u32,
    /// Purpose of the call.
    pub purpose: Purpose,
    /// Model, as the settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Provider, as the settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// Purpose of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Purpose {
    /// Continues the turn with an answer.
    Answer,
    /// Summarises the history of the thread.
    Compact,
}

/// A model call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelEnded {
    /// Id of the turn.
    pub turn: TurnId,
    /// Number of the model call.
    pub call: u32,
    /// How the call ended.
    pub end: ModelEnd,
    /// Tokens that it used, if the vendor reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the usage is an estimate, because the vendor reported none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
    /// Cost at the prices of the time, in billionths of a dollar; `None` if they were unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<u64>,
}

/// A running tool used a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsed {
    /// Id of the turn.
    pub turn: TurnId,
    /// Item of the tool call.
    pub item: ItemId,
    /// Model, as the settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Provider, as the settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Tokens that it used.
    pub usage: Usage,
    /// Whether the usage is an estimate, because the vendor reported none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
    /// Cost at the prices of the time, in billionths of a dollar; `None` if they were unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<u64>,
}

/// How a model call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ModelEnd {
    /// The answer is complete.
    Done {},
    /// It broke off and will be retried.
    Broke {
        /// Failure of the call.
        error: Failure,
        /// Time of the retry.
        retry_at: Timestamp,
    },
    /// It failed for good, and another model gets the same call.
    Rerouted {
        /// Failure of the call.
        error: Failure,
        /// Model that is called next.
        to: Route,
    },
    /// The history exceeds the context window, and is shortened before a retry.
    Overflowed {
        /// Failure that the vendor reported.
        error: Failure,
    },
    /// It failed for good.
    Failed {
        /// Failure of the call.
        error: Failure,
    },
    /// An interrupt stopped it.
    Cancelled {},
    /// The owner died during the call.
    OwnerLost {},
}

/// Tokens of one model call, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// Input tokens read from the vendor's cache.
    #[serde(default)]
    pub cached: u64,
    /// Input tokens written to the vendor's cache.
    #[serde(default)]
    pub cache_written: u64,
    /// Tokens produced, reasoning included.
    pub output: u64,
    /// Output tokens that were reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Input and output tokens together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns the sum of this and another usage.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// An interrupt of the turn was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptAccepted {
    /// Id of the turn.
    pub turn: TurnId,
    /// Cause of the interrupt.
    pub cause: Cause,
}

/// Cause of an interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Cause {
    /// A client sent an interrupt.
    Client {
        /// Principal that the client authenticated as.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// An approval was answered with "cancel".
    Cancelled {
        /// Principal that gave the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// Its owner died, and the settings do not continue turns.
    OwnerLost {},
    /// The server is shutting down.
    Shutdown {},
    /// The thread was forked in the middle of it; it continues only in the other thread.
    Forked {},
    /// Its time budget is spent. The turn ends as failed.
    BudgetSpent(Spending),
    /// The thread was deleted.
    Deleted {
        /// Principal that sent the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
}

/// A turn ended, after all its items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// Id of the turn.
    pub turn: TurnId,
    /// How the turn ended.
    pub end: TurnEnd,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnEnd {
    /// It ended by itself.
    Completed {},
    /// An interrupt stopped it.
    Interrupted(Cause),
    /// It ended with a failure.
    Failed(Failure),
}

/// Earlier history was replaced by a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// Turn in which it happened.
    pub turn: TurnId,
    /// Summary that replaces the history.
    pub summary: String,
}

/// The agent's plan changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanUpdated {
    /// Id of the turn.
    pub turn: TurnId,
    /// Reason for the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Every step, in order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// Description of the step.
    pub step: String,
    /// Progress of the step.
    pub status: StepStatus,
}

/// Progress of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum StepStatus {
    /// The step has not started.
    Pending,
    /// The step is being worked on.
    InProgress,
    /// The step is finished.
    Completed,
}

/// The files a turn has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffUpdated {
    /// Id of the turn.
    pub turn: TurnId,
    /// All its changes so far as one unified diff.
    pub diff: String,
    /// The whole diff as a blob, if it is long; `diff` is then truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Blob>,
}
