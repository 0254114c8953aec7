//! Goals: an objective that a thread pursues over several turns, with its budget and usage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `thread/goal/set`, which sets or changes the goal of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalSetParams {
    /// Thread of the goal.
    pub thread_id: ThreadId,
    /// Objective to reach; null keeps the current one.
    pub objective: Option<String>,
    /// Origin of the change. Null never counts as a request of the user.
    pub origin: Option<ThreadGoalMutationOrigin>,
    /// Status of the goal; null keeps the current one.
    pub status: Option<ThreadGoalStatus>,
    /// Maximum number of tokens the goal may use; absent keeps the current budget.
    pub token_budget: Option<i64>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/goal/set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalSetResponse {
    /// The updated goal.
    pub goal: ThreadGoal,
}

/// Params of `thread/goal/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalGetParams {
    /// Thread of the goal.
    pub thread_id: ThreadId,
}

/// Result of `thread/goal/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalGetResponse {
    /// The thread's goal; null when it has none.
    pub goal: Option<ThreadGoal>,
}

/// Params of `thread/goal/clear`, which removes the goal of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearParams {
    /// Thread of the goal.
    pub thread_id: ThreadId,
    /// Origin of the change. Null never counts as a request of the user.
    pub origin: Option<ThreadGoalMutationOrigin>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/goal/clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearResponse {
    /// Whether the thread had a goal.
    pub cleared: bool,
}

/// `thread/goal/updated`: a thread's goal was set or changed.
/// Sent to every initialised client, also after a resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalUpdatedNotification {
    /// Thread of the goal.
    pub thread_id: ThreadId,
    /// The turn that changed the goal; null when no turn did.
    pub turn_id: Option<TurnId>,
    /// The updated goal.
    pub goal: ThreadGoal,
}

/// `thread/goal/cleared`: the goal of a thread was removed. Sent to every initialised client, also
/// after a resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearedNotification {
    /// Thread of the removed goal.
    pub thread_id: ThreadId,
}

open_enum! {
    /// Origin of a change to a goal.
    pub enum ThreadGoalMutationOrigin {
        /// The user requested the change.
        User = "user",
        /// The client or the agent changed the goal automatically.
        Automatic = "automatic",
    }
}

open_enum! {
    /// Status of a goal.
    pub enum ThreadGoalStatus {
        /// The thread is pursuing the goal.
        Active = "active",
        /// The goal is paused until it is resumed.
        Paused = "paused",
        /// The goal cannot progress without help.
        Blocked = "blocked",
        /// The goal stopped because the account's quota is used up.
        UsageLimited = "usageLimited",
        /// The goal stopped because its own token budget is spent.
        BudgetLimited = "budgetLimited",
        /// The goal has been reached.
        Complete = "complete",
    }
}

/// The goal of a thread. A thread has at most one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoal {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// Creation time, in seconds since the epoch.
    pub created_at: i64,
    /// Objective to reach.
    pub objective: String,
    /// Current status of the goal.
    pub status: ThreadGoalStatus,
    /// Time spent on the goal, in seconds.
    pub time_used_seconds: i64,
    /// Tokens spent on the goal.
    pub tokens_used: i64,
    /// Time of the last change, in seconds since the epoch.
    pub updated_at: i64,
    /// Maximum number of tokens the goal may use; null for no limit.
    pub token_budget: Option<i64>,
}
