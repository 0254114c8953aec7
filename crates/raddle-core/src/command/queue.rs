//! Commands for the queue of input that waits to become turns.

use super::InputMessage;
use crate::{Briefed, Input, ItemId, TurnId};

/// Appends input to a thread's queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Enqueue {
    /// Message that the input becomes.
    pub message: InputMessage,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Replaces input in a thread's queue. Its position stays.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeQueued {
    /// Id of the queued item.
    pub item: ItemId,
    /// New content of the message.
    pub input: Vec<Input>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Removes input from a thread's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unqueue {
    /// Id of the queued item.
    pub item: ItemId,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Reorders a thread's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReorderQueue {
    /// Every queued item, the next first.
    pub items: Vec<ItemId>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Starts a turn with input from a thread's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartQueued {
    /// Id of the queued item; `None` means the next.
    pub item: Option<ItemId>,
    /// Id of the new turn.
    pub turn: TurnId,
    /// Notes on the environment, as with [`StartTurn`](crate::StartTurn).
    pub briefs: Vec<Briefed>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}
