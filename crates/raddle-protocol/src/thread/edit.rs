//! Changing a thread: archive, delete, name, metadata, settings, compaction, shell commands, revert and
//! injected items.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `thread/archive`, which takes a thread and its descendants out of ordinary lists.
/// A loaded thread is unloaded first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadArchiveParams {
    /// The thread to archive.
    pub thread_id: ThreadId,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/archive`. `thread/archived` follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadArchiveResponse {}

/// Params of `thread/delete`, which removes a thread and its descendants for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDeleteParams {
    /// The thread to delete.
    pub thread_id: ThreadId,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
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
    /// The new name; a blank one is refused.
    pub name: String,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/name/set`. `thread/name/updated` follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSetNameResponse {}

/// Params of `thread/metadata/update`. Members left out stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataUpdateParams {
    /// The thread to change.
    pub thread_id: ThreadId,
    /// A product switch stored with the thread; null keeps what is stored.
    #[schemars(extend("x-experimental" = true))]
    pub daybreak_enabled: Option<bool>,
    /// What to change in the stored state of the repository; null keeps all of it.
    pub git_info: Option<ThreadMetadataGitInfoUpdateParams>,
    /// Project to file the thread under. An empty string takes it out of its project.
    #[schemars(extend("x-experimental" = true))]
    pub project_id: Option<String>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/metadata/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataUpdateResponse {
    /// The thread as it is now, without turns.
    pub thread: Thread,
}

/// Params of `thread/settings/update`, which changes the settings of later turns.
/// Members left out stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettingsUpdateParams {
    /// The thread to change.
    pub thread_id: ThreadId,
    /// When the agent must ask before it acts.
    pub approval_policy: Option<AskForApproval>,
    /// Who answers the approvals.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// What turns and the thread may use from now on. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Collaboration mode. Null instructions inside it mean those built in for that mode.
    pub collaboration_mode: Option<CollaborationMode>,
    /// Working directory.
    pub cwd: Option<String>,
    /// All plugins to switch off, in place of the stored list. Null keeps the list, an empty one clears it.
    pub disabled_plugin_ids: Option<Vec<String>>,
    /// All tools that clients run themselves, in place of those there were, from the model's next call on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-experimental" = true))]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// Reasoning effort.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// Model to use.
    pub model: Option<String>,
    /// The provider to ask from now on; null keeps it. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Accepted from older clients and ignored.
    pub multi_agent_mode: Option<MultiAgentMode>,
    /// Id of a permission profile. Excludes `sandboxPolicy`.
    pub permissions: Option<String>,
    /// Tone of the agent. Kept for older clients; the styles no longer differ.
    pub personality: Option<Personality>,
    /// How far commands are fenced in. Excludes `permissions`.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// Tier of service to ask of the provider. On the wire absence keeps it and null clears it.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// How the model's reasoning is summed up.
    pub summary: Option<ReasoningSummary>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/settings/update`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSettingsUpdateResponse {}

/// Params of `thread/unarchive`, which puts a thread back into ordinary lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnarchiveParams {
    /// The thread to bring back.
    pub thread_id: ThreadId,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/unarchive`. `thread/unarchived` follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnarchiveResponse {
    /// The thread, without turns.
    pub thread: Thread,
}

/// Params of `thread/compact/start`, which replaces the model's context by a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCompactStartParams {
    /// The thread to compact.
    pub thread_id: ThreadId,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/compact/start`, sent at once.
/// The work follows as a turn with one `contextCompaction` item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadCompactStartResponse {}

/// Params of `thread/shellCommand`, which runs a command of the user's, outside the sandbox.
/// It gets a turn of its own, or an item in the turn that is running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadShellCommandParams {
    /// The thread to run it in.
    pub thread_id: ThreadId,
    /// Line for the thread's shell; pipes, redirections and quotes work.
    pub command: String,
    /// Longest run in milliseconds. Null means one hour; zero ends it at once; negative is refused.
    pub timeout_ms: Option<i64>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/shellCommand`, sent before the command has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadShellCommandResponse {}

/// Params of `thread/revert`, which drops a thread's newest turns.
/// A running turn is interrupted. Files in the workspace stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRevertParams {
    /// The thread to cut back; it must be loaded and `paginated`.
    pub thread_id: ThreadId,
    /// The first turn to drop; those after it go too.
    pub before_turn_id: TurnId,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/revert`. `thread/reverted` follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRevertResponse {
    /// The thread as it is now; `turns` is always empty.
    pub thread: Thread,
    /// Cursor for `thread/items/list`, to read what is left from the newest item back with `desc`.
    /// The item it names is on the first page. Null when nothing is left.
    pub items_backwards_cursor: Option<String>,
    /// Cursor for `thread/turns/list`, to read what is left from the newest turn back with `desc`.
    /// The turn it names is on the first page. Null when nothing is left.
    pub turns_backwards_cursor: Option<String>,
}

/// Params of `thread/inject_items`, which adds to what the model sees without starting a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadInjectItemsParams {
    /// The thread to add to.
    pub thread_id: ThreadId,
    /// Items in the provider's raw form, oldest first. They are stored, and nobody is told.
    pub items: Vec<Value>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/inject_items`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadInjectItemsResponse {}

/// `thread/settings/updated`, sent to subscribers when a setting changed.
/// Both `thread/settings/update` and the overrides of `turn/start` can cause it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettingsUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// All settings as they are now, not only what changed.
    pub thread_settings: ThreadSettings,
}

/// A change to the stored state of a repository.
/// On the wire, absence keeps a member, null clears it, and a string that is not empty replaces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataGitInfoUpdateParams {
    /// Name of the branch.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub branch: Maybe<String>,
    /// URL of the remote `origin`.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub origin_url: Maybe<String>,
    /// Id of the commit.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub sha: Maybe<String>,
}

/// The settings that a thread's next turn will use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSettings {
    /// When the agent asks before it acts.
    pub approval_policy: AskForApproval,
    /// Who answers the approvals.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Collaboration mode.
    pub collaboration_mode: CollaborationMode,
    /// Absolute working directory.
    pub cwd: String,
    /// Model to use.
    pub model: String,
    /// Id of the model's provider.
    pub model_provider: String,
    /// How far commands are fenced in.
    pub sandbox_policy: SandboxPolicy,
    /// Profile from which the fence was made; null when it came from none or is unknown.
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// What turns and the thread may use; absent when nothing has a limit. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Plugins switched off for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// Reasoning effort; null leaves it to the model.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Tone as stored; the styles no longer differ.
    pub personality: Option<Personality>,
    /// Tier of service; null is the provider's default.
    pub service_tier: Option<String>,
    /// How the model's reasoning is summed up; null leaves it to the config.
    pub summary: Option<ReasoningSummary>,
}
