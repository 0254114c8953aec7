//! Input in the queue.

use serde::{Deserialize, Serialize};

use crate::{Input, InputQueued, ItemId};

/// Input in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedInput {
    /// Id of the input, which its message keeps.
    pub item: ItemId,
    /// Content of the message, in parts.
    pub input: Vec<Input>,
    /// The client's own id for the message.
    pub client_id: Option<String>,
    /// Principal that sent the command.
    pub(crate) principal: Option<String>,
    /// Its bytes as stored.
    pub(super) bytes: usize,
}

impl From<&InputQueued> for QueuedInput {
    fn from(it: &InputQueued) -> Self {
        Self {
            item: it.item.clone(),
            input: it.input.clone(),
            client_id: it.client_id.clone(),
            principal: it.principal.clone(),
            bytes: bytes(&it.input),
        }
    }
}

/// Returns the bytes of input as stored.
pub(super) fn bytes(input: &[Input]) -> usize {
    serde_json::to_string(input).map_or(0, |text| text.len())
}
