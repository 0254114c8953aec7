//! The queue of a thread: input kept to become turns later, at most 100 entries. Experimental API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `thread/queue/add`: puts input at the end of a thread's queue. It survives a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueAddParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// The client's own id for the message; it comes back as `clientId` of the user message item.
    pub client_user_message_id: String,
    /// What the user says, in order.
    pub input: Vec<UserInput>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
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
    /// The thread.
    pub thread_id: ThreadId,
    /// Where to go on, from `nextCursor` of the page before; null starts at the front of the queue.
    pub cursor: Option<String>,
    /// The most entries to return; null means 25.
    pub limit: Option<u32>,
}

/// Result of `thread/queue/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueListResponse {
    /// One page of entries, the next to run first.
    pub data: Vec<QueuedSubmission>,
    /// The cursor of the next page; null after the last.
    pub next_cursor: Option<String>,
}

/// Params of `thread/queue/update`: gives a queued entry other input. Its place stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueUpdateParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// The input that takes the old one's place.
    pub input: Vec<UserInput>,
    /// The entry to change.
    pub queued_submission_id: String,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueUpdateResponse {
    /// The entry as it now stands.
    pub queued_submission: QueuedSubmission,
}

/// Params of `thread/queue/delete`: takes an entry out of the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueDeleteParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// The entry to take out.
    pub queued_submission_id: String,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/delete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueDeleteResponse {
    /// True if the entry was still there to take out.
    pub deleted: bool,
}

/// Params of `thread/queue/reorder`: puts the queue in another order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueReorderParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// The ids of the entries in their new order, the next to run first.
    pub queued_submission_ids: Vec<String>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/reorder`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadQueueReorderResponse {}

/// Params of `thread/queue/start`: makes a queued entry a turn now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueStartParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// The entry to start; null means the one at the front.
    pub queued_submission_id: Option<String>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/queue/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueStartResponse {
    /// The turn that the entry became.
    pub turn: Turn,
}

/// `thread/queue/changed`: a thread's queue is no longer what it was; read it with `thread/queue/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueChangedNotification {
    /// The thread.
    pub thread_id: ThreadId,
}

/// Input waiting in a thread's queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedSubmission {
    /// The entry's id, given by the server.
    pub id: String,
    /// The id the client gave the message.
    pub client_user_message_id: String,
    /// What the user says, in order.
    pub input: Vec<UserInput>,
}
