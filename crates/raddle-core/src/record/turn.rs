//! Turns, and the calls of the model in them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Blob, Failure, Item, Route, Spending, is_false};
use crate::{Timestamp, TurnId};

/// A turn began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted {
    /// Its id.
    pub turn: TurnId,
    /// What it is for.
    pub kind: TurnKind,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The turn it goes back to; itself if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<TurnId>,
    /// A schema that its last message must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnKind {
    /// To answer input.
    Work,
    /// To review.
    Review,
    /// To condense the history.
    Compaction,
    /// To run a command of the user's.
    Shell,
}

/// Input was taken into a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputAccepted {
    /// The turn.
    pub turn: TurnId,
    /// The message, whole.
    pub item: Item,
    /// Who sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// The model is about to be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCalled {
    /// The turn.
    pub turn: TurnId,
    /// The number of this call in its thread, counted from 1; every attempt has its own.
    pub call: u32,
    /// Which try at the same question this is, counted from 1.
    pub attempt: u32,
    /// What for.
    pub purpose: Purpose,
    /// The model, as the settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its provider, as the settings name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
}

/// What the model is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Purpose {
    /// To go on with the turn.
    Answer,
    /// To condense the history.
    Compact,
}

/// A call of the model ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelEnded {
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: u32,
    /// How it ended.
    pub end: ModelEnd,
    /// What it used, as far as the vendor said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the vendor did not say, and this is an estimate.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
    /// What that cost at the prices of the time, in billionths of a dollar; nothing if they were not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<u64>,
}

/// How a call of the model ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ModelEnd {
    /// It said all it had to say.
    Done {},
    /// It broke off and will be tried again.
    Broke {
        /// Why.
        error: Failure,
        /// When to try again.
        retry_at: Timestamp,
    },
    /// It failed for good, and someone else is asked the same.
    Rerouted {
        /// Why.
        error: Failure,
        /// Who is asked now.
        to: Route,
    },
    /// The history does not fit the model, and is made shorter before the same is asked again.
    Overflowed {
        /// What the vendor said.
        error: Failure,
    },
    /// It failed for good.
    Failed {
        /// Why.
        error: Failure,
    },
    /// It was stopped by an interrupt.
    Cancelled {},
    /// Its owner died.
    OwnerLost {},
}

/// Tokens of one call of the model, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Sent, cached ones included.
    pub input: u64,
    /// Of these, read from the vendor's cache.
    #[serde(default)]
    pub cached: u64,
    /// Of these, written to the vendor's cache.
    #[serde(default)]
    pub cache_written: u64,
    /// Produced, reasoning included.
    pub output: u64,
    /// Of these, reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Both directions together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// This and another together.
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

/// The turn is to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptAccepted {
    /// The turn.
    pub turn: TurnId,
    /// Who stops it, and why.
    pub cause: Cause,
}

/// Why a turn was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Cause {
    /// A client asked.
    Client {
        /// Who it was authenticated as.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// An approval was answered with "cancel".
    Cancelled {
        /// Who answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// Its owner died, and turns are not taken up again here.
    OwnerLost {},
    /// The server is leaving.
    Shutdown {},
    /// The thread was forked in the middle of it; it goes on only in the other thread.
    Forked {},
    /// Its time is over. The turn ends as one that failed.
    BudgetSpent(Spending),
    /// The thread is to be forgotten.
    Deleted {
        /// Who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
}

/// A turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// The turn.
    pub turn: TurnId,
    /// How.
    pub end: TurnEnd,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnEnd {
    /// By itself.
    Completed {},
    /// It was stopped.
    Interrupted(Cause),
    /// It went wrong.
    Failed(Failure),
}

/// Earlier history was replaced by a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// The turn in which it happened.
    pub turn: TurnId,
    /// What the model reads in place of the history.
    pub summary: String,
}

/// The agent's plan changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanUpdated {
    /// The turn.
    pub turn: TurnId,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// All steps.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// What is to be done.
    pub step: String,
    /// How far it is.
    pub status: StepStatus,
}

/// How far a step of a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

/// The files a turn has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffUpdated {
    /// The turn.
    pub turn: TurnId,
    /// All its changes so far as one unified diff.
    pub diff: String,
    /// The same out of line, if it is long; `diff` is then cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Blob>,
}
