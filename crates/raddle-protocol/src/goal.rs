//! Goals: an objective a thread pursues over several turns, with what it may use and has used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `thread/goal/set`: gives a thread a goal, or changes the one it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalSetParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// What is to be reached; null keeps the present objective.
    pub objective: Option<String>,
    /// Who wants the change. Null never counts as the user's own wish.
    pub origin: Option<ThreadGoalMutationOrigin>,
    /// Where the goal stands; null keeps the present status.
    pub status: Option<ThreadGoalStatus>,
    /// The most tokens the goal may use; absent keeps the present budget.
    pub token_budget: Option<i64>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/goal/set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalSetResponse {
    /// The goal as it now stands.
    pub goal: ThreadGoal,
}

/// Params of `thread/goal/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalGetParams {
    /// The thread.
    pub thread_id: ThreadId,
}

/// Result of `thread/goal/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalGetResponse {
    /// The thread's goal; null when it has none.
    pub goal: Option<ThreadGoal>,
}

/// Params of `thread/goal/clear`: takes a thread's goal away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearParams {
    /// The thread.
    pub thread_id: ThreadId,
    /// Who wants the change. Null never counts as the user's own wish.
    pub origin: Option<ThreadGoalMutationOrigin>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/goal/clear`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearResponse {
    /// True if there was a goal to take away.
    pub cleared: bool,
}

/// `thread/goal/updated`: a thread's goal was set or changed.
/// Sent to every initialised client, also after a resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalUpdatedNotification {
    /// The thread.
    pub thread_id: ThreadId,
    /// The turn that changed it; null when no turn did.
    pub turn_id: Option<TurnId>,
    /// The goal as it now stands.
    pub goal: ThreadGoal,
}

/// `thread/goal/cleared`: a thread has no goal.
/// Sent to every initialised client, also after a resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoalClearedNotification {
    /// The thread.
    pub thread_id: ThreadId,
}

open_enum! {
    /// Who wants a goal changed.
    pub enum ThreadGoalMutationOrigin {
        /// The user asked for it.
        User = "user",
        /// The client or the agent does it as the goal takes its course.
        Automatic = "automatic",
    }
}

open_enum! {
    /// Where a goal stands.
    pub enum ThreadGoalStatus {
        /// It is being pursued.
        Active = "active",
        /// It rests until someone takes it up again.
        Paused = "paused",
        /// It cannot go on without help.
        Blocked = "blocked",
        /// It stopped because the account's allowance is used up.
        UsageLimited = "usageLimited",
        /// It stopped because its own token budget is spent.
        BudgetLimited = "budgetLimited",
        /// It has been reached.
        Complete = "complete",
    }
}

/// The goal of a thread. A thread has at most one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadGoal {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// When it was set, in seconds since the epoch.
    pub created_at: i64,
    /// What is to be reached.
    pub objective: String,
    /// Where it stands.
    pub status: ThreadGoalStatus,
    /// How long it has been worked on, in seconds.
    pub time_used_seconds: i64,
    /// How many tokens have been used on it.
    pub tokens_used: i64,
    /// When it last changed, in seconds since the epoch.
    pub updated_at: i64,
    /// The most tokens it may use; null for no limit.
    pub token_budget: Option<i64>,
}
