//! Changes to a thread: archive, delete, name, metadata, settings, compaction, shell commands,
//! revert and injected items.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `thread/archive`, which removes a thread and its descendants from ordinary lists. A
/// loaded thread is unloaded first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadArchiveParams {
    /// The thread to archive.
    pub thread_id: ThreadId,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/archive`. `thread/archived` follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadArchiveResponse {}

/// Params of `thread/delete`, which permanently removes a thread and its descendants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDeleteParams {
    /// The thread to delete.
    pub thread_id: ThreadId,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/delete`. `thread/deleted` follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadDeleteResponse {}

/// Params of `thread/name/set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSetNameParams {
    /// The thread to rename.
    pub thread_id: ThreadId,
    /// The new name; a blank name is rejected.
    pub name: String,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/name/set`. `thread/name/updated` follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSetNameResponse {}

/// Params of `thread/metadata/update`. Omitted members keep their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataUpdateParams {
    /// The thread to change.
    pub thread_id: ThreadId,
    /// Product flag stored with the thread; null keeps the stored value.
    #[schemars(extend("x-experimental" = true))]
    pub daybreak_enabled: Option<bool>,
    /// Changes to the stored git state; null keeps all of it.
    pub git_info: Option<ThreadMetadataGitInfoUpdateParams>,
    /// Project to file the thread under. An empty string removes the thread from its project.
    #[schemars(extend("x-experimental" = true))]
    pub project_id: Option<String>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/metadata/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataUpdateResponse {
    /// The updated thread, without turns.
    pub thread: Thread,
}

/// Params of `thread/settings/update`, which changes the settings of later turns. Omitted members
/// keep their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettingsUpdateParams {
    /// The thread to change.
    pub thread_id: ThreadId,
    /// Approval policy: when the agent must ask before it acts.
    pub approval_policy: Option<AskForApproval>,
    /// Reviewer that answers approval requests.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Budget limits of each turn and of the thread. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Collaboration mode. Null instructions inside it select the built-in instructions of that
    /// mode.
    pub collaboration_mode: Option<CollaborationMode>,
    /// Working directory of later turns; null keeps the current one.
    pub cwd: Option<String>,
    /// All plugins to disable; replaces the stored list. Null keeps the list, an empty list clears
    /// it.
    pub disabled_plugin_ids: Option<Vec<String>>,
    /// All client-run tools; replaces the previous list from the next model call on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-experimental" = true))]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// Reasoning effort of later turns; null keeps the current one.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// Model of later turns; null keeps the current one.
    pub model: Option<String>,
    /// Model provider of later turns; null keeps the current one. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Accepted from older clients and ignored.
    pub multi_agent_mode: Option<MultiAgentMode>,
    /// Id of a permission profile. Cannot be combined with `sandboxPolicy`.
    pub permissions: Option<String>,
    /// Tone of the agent. Accepted from older clients; it no longer has any effect.
    pub personality: Option<Personality>,
    /// Sandbox policy for commands. Cannot be combined with `permissions`.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// Service tier requested from the provider. On the wire, absence keeps the tier and null
    /// clears it.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// Reasoning summary mode of later turns; null keeps the current one.
    pub summary: Option<ReasoningSummary>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/settings/update`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSettingsUpdateResponse {}

/// Params of `thread/unarchive`, which returns a thread to ordinary lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnarchiveParams {
    /// The thread to restore.
    pub thread_id: ThreadId,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/unarchive`. `thread/unarchived` follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnarchiveResponse {
    /// The restored thread, without turns.
    pub thread: Thread,
}

/// Params of `thread/compact/start`, which replaces the model's context by a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCompactStartParams {
    /// The thread to compact.
    pub thread_id: ThreadId,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/compact/start`, returned immediately. The compaction follows as a turn with
/// one `contextCompaction` item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadCompactStartResponse {}

/// Params of `thread/shellCommand`, which runs a command of the user outside the sandbox. The
/// command gets its own turn, or an item in the running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadShellCommandParams {
    /// The thread to run the command in.
    pub thread_id: ThreadId,
    /// Command line for the thread's shell; pipes, redirections and quotes work.
    pub command: String,
    /// Timeout in milliseconds. Null means one hour, zero ends the command immediately, and a
    /// negative value is rejected.
    pub timeout_ms: Option<i64>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/shellCommand`, returned before the command has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadShellCommandResponse {}

/// Params of `thread/revert`, which drops the newest turns of a thread. A running turn is
/// interrupted. Files in the workspace change only if `what` says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRevertParams {
    /// The thread to revert; it must be loaded and `paginated`.
    pub thread_id: ThreadId,
    /// The first turn to drop; all later turns are dropped too.
    pub before_turn_id: TurnId,
    /// Parts of the thread that return to their state before that turn; absent means
    /// `conversation`. With `files` no turn is dropped. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<RestoreScope>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/revert`. `thread/reverted` follows it if turns were dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRevertResponse {
    /// The reverted thread; `turns` is always empty.
    pub thread: Thread,
    /// Cursor for `thread/items/list` with `desc`, to read the remaining items from the newest
    /// back. The first page includes the item that the cursor names. Null when no items remain.
    pub items_backwards_cursor: Option<String>,
    /// Cursor for `thread/turns/list` with `desc`, to read the remaining turns from the newest
    /// back. The first page includes the turn that the cursor names. Null when no turns remain.
    pub turns_backwards_cursor: Option<String>,
    /// Files that were restored; absent if `what` did not include files. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Vec<RestoredFile>>,
    /// Files that changed since and stay as they are; absent if `what` did not include files.
    /// Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Vec<FileConflict>>,
    /// Checkpoint of the state before the restore, to undo it; absent if no file was restored.
    /// Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
}

/// Params of `thread/rollback`, the older form of `thread/revert`. A running turn is interrupted.
/// Files in the workspace are not changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRollbackParams {
    /// The thread to revert.
    pub thread_id: ThreadId,
    /// Number of turns to drop, at least 1. A number above that of the turns drops all of them.
    pub num_turns: u32,
}

/// Result of `thread/rollback`. `deprecationNotice` precedes it, and `thread/reverted` follows it
/// if a turn was dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRollbackResponse {
    /// The reverted thread, with the newest of its remaining turns.
    pub thread: Thread,
}

/// Params of `thread/inject_items`, which adds items to the model's context without starting a
/// turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadInjectItemsParams {
    /// The thread that receives the items.
    pub thread_id: ThreadId,
    /// Items in the provider's raw form, oldest first. They are stored, and no notification is
    /// sent.
    pub items: Vec<Value>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/inject_items`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadInjectItemsResponse {}

/// `thread/settings/updated`: a setting of a thread changed. Sent to subscribers, after
/// `thread/settings/update` and after overrides in `turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettingsUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// All current settings, not only the changed ones.
    pub thread_settings: ThreadSettings,
}

/// A change to the stored git state. On the wire, absence keeps a member, null clears it, and a
/// non-empty string replaces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataGitInfoUpdateParams {
    /// Name of the checked-out branch.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub branch: Maybe<String>,
    /// URL of the remote `origin`.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub origin_url: Maybe<String>,
    /// Hash of the checked-out commit.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub sha: Maybe<String>,
}

/// Settings of a thread's next turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettings {
    /// Approval policy: when the agent must ask before it acts.
    pub approval_policy: AskForApproval,
    /// Reviewer that answers approval requests.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Collaboration mode of the next turn.
    pub collaboration_mode: CollaborationMode,
    /// Absolute path of the folder in which commands run.
    pub cwd: String,
    /// Model of the next turn.
    pub model: String,
    /// Id of the model provider.
    pub model_provider: String,
    /// Sandbox policy for commands.
    pub sandbox_policy: SandboxPolicy,
    /// Permission profile from which the sandbox policy was derived; null when there is none or it
    /// is unknown.
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// Budget limits of each turn and of the thread; absent when no limit is set. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Ids of the plugins disabled for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// Reasoning effort; null uses the model's default.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Tone as stored; it no longer has any effect.
    pub personality: Option<Personality>,
    /// Service tier; null means the provider's default.
    pub service_tier: Option<String>,
    /// Reasoning summary mode; null uses the configuration.
    pub summary: Option<ReasoningSummary>,
}
