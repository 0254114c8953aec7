//! Why a command was refused. Being refused is an ordinary answer.

use serde::{Deserialize, Serialize};

use crate::{Resolution, TurnId, TurnKind};

/// Why a command was refused: a state of the thread, in which the command means nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// There is no thread yet.
    #[error("the thread has not been started")]
    NotStarted,
    /// There is one already.
    #[error("the thread has been started already")]
    AlreadyStarted,
    /// It was deleted.
    #[error("the thread was deleted")]
    Deleted,
    /// A later owner has the thread.
    #[error("the thread is owned elsewhere")]
    OwnedElsewhere,
    /// No turn runs.
    #[error("no active turn")]
    NoTurn,
    /// Another turn runs.
    #[error("expected active turn id `{expected}` but found `{found}`")]
    OtherTurn {
        /// The one named.
        expected: TurnId,
        /// The one that runs.
        found: TurnId,
    },
    /// The turn takes no input.
    #[error("the active turn takes no further input")]
    NotSteerable {
        /// What kind it is.
        kind: TurnKind,
    },
    /// A turn runs, and this must wait for its end.
    #[error("a turn is running; interrupt it or wait for its end")]
    TurnRunning,
    /// The turn is stopping.
    #[error("the active turn is stopping; try again once it has ended")]
    TurnStopping,
    /// There is nothing in the input.
    #[error("input must not be empty")]
    EmptyInput,
    /// There is no goal to change.
    #[error("the thread has no goal; say an objective to give it one")]
    NoGoal,
    /// Nothing is to begin by itself.
    #[error("nothing is to begin by itself")]
    NothingWaits,
    /// The queue holds as much as it may.
    #[error("the queue is full; start or delete something that is in it")]
    QueueFull,
    /// Nothing is in the queue, or not this.
    #[error("no such queued submission")]
    NotQueued,
    /// The new order is not one of what is in the queue.
    #[error("the new order must name every queued submission exactly once")]
    OtherQueue,
    /// Calls and outputs that are to be injected do not belong together.
    #[error(
        "the call `{call}` must stand among the items once, and its output once, behind it; inject both together"
    )]
    Unpaired {
        /// The id of the call.
        call: String,
    },
    /// No such request is or was open.
    #[error("no such request")]
    NoRequest,
    /// Someone was faster, or it was withdrawn.
    #[error("the request was already resolved")]
    AlreadyResolved {
        /// How, if it was recent.
        how: Option<Settlement>,
    },
    /// The answer does not fit the question.
    #[error("the answer does not fit the request")]
    WrongAnswer,
    /// The item is not open.
    #[error("no such open item")]
    NoItem,
    /// An item of that id is there already.
    #[error("an item with this id exists")]
    ItemExists,
    /// What is reported belongs to a call of the model that has ended.
    #[error("the model call has ended")]
    StaleCall,
    /// The item holds as much text as it may.
    #[error("the item is full")]
    ItemFull,
    /// The tool has not been started, or has ended.
    #[error("the tool is not running")]
    ToolNotRunning,
    /// No such turn in what counts of the history.
    #[error("no such turn in this thread's history")]
    NoSuchTurn,
    /// It lies behind more reverts than are remembered.
    #[error(
        "too much was taken back since that turn; compact the thread first, or go back less far"
    )]
    TooManyReverts,
    /// The same key was used for something else.
    #[error("this clientRequestId was used for a different request")]
    KeyReused,
    /// The inbox is full.
    #[error("the thread has too much to do; try again shortly")]
    Busy,
    /// What was asked could not be stored.
    #[error("the thread's journal cannot be written: {0}")]
    NotStored(String),
}

/// How a request was settled, without what was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Settlement {
    /// Someone answered.
    Answered {
        /// Who.
        by: String,
    },
    /// Its time ran out.
    Expired {},
    /// Nobody needs it any more.
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
