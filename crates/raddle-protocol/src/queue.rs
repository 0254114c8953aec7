//! The queue of a thread: stored input that becomes later turns, at most 100 entries. Experimental
//! API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `thread/queue/add`, which appends input to a thread's queue. The queue survives a
/// restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueAddParams {
    /// Thread of the queue.
    pub thread_id: ThreadId,
    /// Id of the message, chosen by the client; returned as `clientId` of the user message item.
    pub client_user_message_id: String,
    /// Input of the user, in order.
    pub input: Vec<UserInput>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/add`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueAddResponse {
    /// The new entry, with its id.
    pub queued_submission: QueuedSubmission,
}

/// Params of `thread/queue/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueListParams {
    /// Thread of the queue.
    pub thread_id: ThreadId,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Maximum number of entries on the page; null means 25.
    pub limit: Option<u32>,
}

/// Result of `thread/queue/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueListResponse {
    /// One page of entries, the next to run first.
    pub data: Vec<QueuedSubmission>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `thread/queue/update`, which replaces the input of a queued entry. The entry keeps its
/// position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueUpdateParams {
    /// Thread of the queue.
    pub thread_id: ThreadId,
    /// New input of the entry.
    pub input: Vec<UserInput>,
    /// The entry to change.
    pub queued_submission_id: String,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueUpdateResponse {
    /// The updated entry.
    pub queued_submission: QueuedSubmission,
}

/// Params of `thread/queue/delete`, which removes an entry from the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueDeleteParams {
    /// Thread of the queue.
    pub thread_id: ThreadId,
    /// The entry to remove.
    pub queued_submission_id: String,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueDeleteResponse {
    /// Whether the entry was still queued.
    pub deleted: bool,
}

/// Params of `thread/queue/reorder`, which changes the order of the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueReorderParams {
    /// Thread of the queue.
    pub thread_id: ThreadId,
    /// Ids of the entries in their new order, the next to run first.
    pub queued_submission_ids: Vec<String>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/reorder`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadQueueReorderResponse {}

/// Params of `thread/queue/start`, which starts a turn with a queued entry now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueStartParams {
    /// Thread of the queue.
    pub thread_id: ThreadId,
    /// The entry to start; null means the first entry.
    pub queued_submission_id: Option<String>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueStartResponse {
    /// The turn that was started with the entry.
    pub turn: Turn,
}

/// `thread/queue/changed`: a thread's queue has changed; read it with `thread/queue/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueChangedNotification {
    /// Thread of the queue.
    pub thread_id: ThreadId,
}

/// Input waiting in a thread's queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedSubmission {
    /// Id of the entry, assigned by the server.
    pub id: String,
    /// Id of the message, chosen by the client.
    pub client_user_message_id: String,
    /// Input of the user, in order.
    pub input: Vec<UserInput>,
}
