//! Queue of a thread: input that waits to become turns.

use serde::{Deserialize, Serialize};

use super::Input;
use crate::ItemId;

/// Input was queued: at the end, or in place of the entry with the same id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputQueued {
    /// Id of the input, which its message keeps.
    pub item: ItemId,
    /// Content of the message, in parts.
    pub input: Vec<Input>,
    /// The client's own id for the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// Input left the queue: it begins a turn, or it was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputUnqueued {
    /// Id of the queued item.
    pub item: ItemId,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// The queue was reordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueReordered {
    /// Every queued item, the next first.
    pub items: Vec<ItemId>,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}
