//! The queue of a thread: input that waits to become turns.

use serde::{Deserialize, Serialize};

use super::Input;
use crate::ItemId;

/// Input was put into the queue: at its end, or in the place of what was there under the same id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputQueued {
    /// Its id; the message has it once it is said.
    pub item: ItemId,
    /// Its parts.
    pub input: Vec<Input>,
    /// The client's own id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Who sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// Input is no longer in the queue: it begins a turn, or nobody wants it any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputUnqueued {
    /// Which.
    pub item: ItemId,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// The queue was put in another order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueReordered {
    /// All that is in it, the next first.
    pub items: Vec<ItemId>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}
