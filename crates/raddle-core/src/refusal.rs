//! Refusals of commands. A refusal is an ordinary response.

use serde::{Deserialize, Serialize};

use crate::{Resolution, TurnId, TurnKind};

/// Reason why a thread refuses a command in its present state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// The thread does not exist yet.
    #[error("the thread has not been started")]
    NotStarted,
    /// The thread exists already.
    #[error("the thread has been started already")]
    AlreadyStarted,
    /// The thread was deleted.
    #[error("the thread was deleted")]
    Deleted,
    /// A later owner has the thread.
    #[error("the thread is owned elsewhere")]
    OwnedElsewhere,
    /// No turn is running.
    #[error("no active turn")]
    NoTurn,
    /// Another turn is running.
    #[error("expected active turn id `{expected}` but found `{found}`")]
    OtherTurn {
        /// Turn that the client named.
        expected: TurnId,
        /// Turn that is running.
        found: TurnId,
    },
    /// The turn accepts no input.
    #[error("the active turn takes no further input")]
    NotSteerable {
        /// Kind of the turn.
        kind: TurnKind,
    },
    /// A turn is running, and the command must wait for its end.
    #[error("a turn is running; interrupt it or wait for its end")]
    TurnRunning,
    /// The turn is stopping.
    #[error("the active turn is stopping; try again once it has ended")]
    TurnStopping,
    /// The input is empty.
    #[error("input must not be empty")]
    EmptyInput,
    /// There is no goal to change.
    #[error("the thread has no goal; pass an objective to set one")]
    NoGoal,
    /// No turn waits to begin: there is no queued input and no active goal.
    #[error("no turn is waiting to begin")]
    NothingWaits,
    /// The queue is full.
    #[error("the queue is full; start or delete a queued submission")]
    QueueFull,
    /// The queue is empty, or does not contain the item.
    #[error("no such queued submission")]
    NotQueued,
    /// The new order does not match the queue.
    #[error("the new order must name every queued submission exactly once")]
    OtherQueue,
    /// Calls and outputs to inject do not belong together.
    #[error(
        "the call `{call}` must occur once among the items, followed once by its output; inject both together"
    )]
    Unpaired {
        /// Id of the call.
        call: String,
    },
    /// No request of that number is or was open.
    #[error("no such request")]
    NoRequest,
    /// The request was answered before, or withdrawn.
    #[error("the request was already resolved")]
    AlreadyResolved {
        /// How it was resolved, if that was recent.
        how: Option<Settlement>,
    },
    /// The answer is of the wrong type for the request.
    #[error("the answer does not fit the request")]
    WrongAnswer,
    /// The item is not open.
    #[error("no such open item")]
    NoItem,
    /// An item with that id exists.
    #[error("an item with this id exists")]
    ItemExists,
    /// The report belongs to a model call that has ended.
    #[error("the model call has ended")]
    StaleCall,
    /// The item's text is full.
    #[error("the item is full")]
    ItemFull,
    /// The tool has not been started, or has ended.
    #[error("the tool is not running")]
    ToolNotRunning,
    /// The turn is not in the part of the history that counts.
    #[error("no such turn in this thread's history")]
    NoSuchTurn,
    /// The turn lies behind more reverts than are stored.
    #[error(
        "too many reverts since that turn; compact the thread first, or revert to a later turn"
    )]
    TooManyReverts,
    /// The idempotency key was used for another request.
    #[error("this clientRequestId was used for a different request")]
    KeyReused,
    /// The inbox is full.
    #[error("the thread is overloaded; retry shortly")]
    Busy,
    /// The command could not be stored.
    #[error("the thread's journal cannot be written: {0}")]
    NotStored(String),
    /// The thread ended before it was known whether the command was stored.
    #[error("it is unknown whether the command was stored; read the thread, then retry")]
    OutcomeUnknown,
}

/// How a request was resolved, without the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Settlement {
    /// A client or webhook answered.
    Answered {
        /// Principal that gave the answer.
        by: String,
    },
    /// The deadline passed without an answer.
    Expired {},
    /// The request is no longer needed.
    Withdrawn {},
}

impl From<&Resolution> for Settlement {
    fn from(resolution: &Resolution) -> Self {
        match resolution {
            Resolution::Answered { by, .. } => Self::Answered { by: by.clone() },
            Resolution::Expired {} => Self::Expired {},
            Resolution::Withdrawn {} => Self::Withdrawn {},
        }
    }
}
