//! The queue of input that waits to become turns.

use super::InputMessage;
use crate::{Briefed, Input, ItemId, TurnId};

/// Put input into a thread's queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Enqueue {
    /// The message that it becomes.
    pub message: InputMessage,
    /// Who sends it.
    pub principal: Option<String>,
}

/// Change input that is in a thread's queue. Its place stays.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeQueued {
    /// Which.
    pub item: ItemId,
    /// What is said instead.
    pub input: Vec<Input>,
    /// Who asks.
    pub principal: Option<String>,
}

/// Take input out of a thread's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unqueue {
    /// Which.
    pub item: ItemId,
    /// Who asks.
    pub principal: Option<String>,
}

/// Put a thread's queue in another order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReorderQueue {
    /// All that is in it, the next first.
    pub items: Vec<ItemId>,
    /// Who asks.
    pub principal: Option<String>,
}

/// Begin a turn with input that is in a thread's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartQueued {
    /// Which; nothing means the next.
    pub item: Option<ItemId>,
    /// The turn's id.
    pub turn: TurnId,
    /// What there is to say about the surroundings, as with [`StartTurn`](crate::StartTurn).
    pub briefs: Vec<Briefed>,
    /// Who asks.
    pub principal: Option<String>,
}
