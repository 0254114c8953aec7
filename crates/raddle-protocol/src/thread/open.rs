//! Opening threads: the params and results of `thread/start`, `thread/resume`, `thread/fork` and
//! `thread/unsubscribe`, and the types they contain.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `thread/start`, which creates a thread and subscribes the caller to it. Every member
/// is optional. A null or absent setting comes from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartParams {
    /// Lets a provider with a fixed list of models fall back to its default when `model` is not on
    /// the list. False by default.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub allow_provider_model_fallback: bool,
    /// Approval policy: when the agent must ask before it acts.
    pub approval_policy: Option<AskForApproval>,
    /// Reviewer that answers approval requests.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Text that replaces the built-in system instructions.
    pub base_instructions: Option<String>,
    /// Configuration values for this thread only, keyed by dotted path (`a.b.c`).
    pub config: Option<BTreeMap<String, Value>>,
    /// Working directory. It need not exist yet.
    pub cwd: Option<String>,
    /// Product flag stored with the thread; null leaves it unset. Not allowed for ephemeral
    /// threads.
    #[schemars(extend("x-experimental" = true))]
    pub daybreak_enabled: Option<bool>,
    /// Developer instructions, inserted before the conversation in addition to the system
    /// instructions.
    pub developer_instructions: Option<String>,
    /// Tools that the client runs itself when the server sends `item/tool/call`; at most 128.
    #[schemars(extend("x-experimental" = true))]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// Environments in which the thread's tools run; the first is the primary one. Null selects the
    /// default environment; an empty list selects none.
    #[schemars(extend("x-experimental" = true))]
    pub environments: Option<Vec<TurnEnvironmentParams>>,
    /// Keeps the thread in memory only. Null means false.
    pub ephemeral: Option<bool>,
    /// Also sends the model's items in the provider's raw form. False by default.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_raw_events: bool,
    /// How clients fetch the thread's history. Null means `paginated`.
    #[schemars(extend("x-experimental" = true))]
    pub history_mode: Option<ThreadHistoryMode>,
    /// Has no effect; it exists to test the gating of experimental members.
    #[schemars(extend("x-experimental" = true))]
    pub mock_experimental_field: Option<String>,
    /// Model of the thread; null uses the configured one.
    pub model: Option<String>,
    /// Id of the model provider in the configuration.
    pub model_provider: Option<String>,
    /// Accepted from older clients and ignored.
    #[schemars(extend("x-experimental" = true))]
    pub multi_agent_mode: Option<MultiAgentMode>,
    /// Id of a permission profile. Cannot be combined with `sandbox`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Tone of the agent. Accepted from older clients; it no longer has any effect.
    pub personality: Option<Personality>,
    /// Project to file the thread under; null means none.
    #[schemars(extend("x-experimental" = true))]
    pub project_id: Option<String>,
    /// Root directories of the workspace, as absolute paths.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// Sandbox mode for commands. Cannot be combined with `permissions`.
    pub sandbox: Option<SandboxMode>,
    /// Directories from which the server loads the capabilities that the host selected.
    #[schemars(extend("x-experimental" = true))]
    pub selected_capability_roots: Option<Vec<SelectedCapabilityRoot>>,
    /// Name of the client's service, for metrics.
    pub service_name: Option<String>,
    /// Service tier to request from the provider.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// Reason for the start, which hooks may inspect. Null means `startup`.
    pub session_start_source: Option<ThreadStartSource>,
    /// Label chosen by the client for the purpose of the thread, such as `user`. It has no effect.
    pub thread_source: Option<String>,
    /// Folder in which the agent works; absence means `shared`. With `copy`, `cwd` of the result is a
    /// folder in the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceMode>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/start`: the new thread and its effective settings. `thread/started` follows
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartResponse {
    /// Approval policy: when the agent must ask before it acts.
    pub approval_policy: AskForApproval,
    /// Reviewer that answers approval requests.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Absolute path of the folder in which commands run.
    pub cwd: String,
    /// Model that the thread uses.
    pub model: String,
    /// Id of the model provider in effect.
    pub model_provider: String,
    /// Sandbox policy in effect.
    pub sandbox: SandboxPolicy,
    /// The new thread, without turns.
    pub thread: Thread,
    /// Permission profile from which the sandbox policy was derived; null when there is none or it
    /// is unknown.
    #[schemars(extend("x-experimental" = true))]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// Ids of the plugins disabled for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// Paths of the instruction files that were read, such as `AGENTS.md`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub instruction_sources: Vec<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Reasoning effort in effect; null uses the model's default.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Root directories of the workspace, as absolute paths.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub runtime_workspace_roots: Vec<String>,
    /// Service tier requested from the provider; null means the provider's default.
    pub service_tier: Option<String>,
}

/// Params of `thread/resume`, which loads a stored thread or attaches to a loaded one, and
/// subscribes the caller to it. A null setting overrides nothing. All settings are ignored if the
/// thread is running or already has a subscriber.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeParams {
    /// The thread to resume.
    pub thread_id: ThreadId,
    /// Last `seq` that the client received. The server sends all later notifications after the
    /// response, which then has no turns. Null starts with the current state of the thread.
    /// Requires the extension `raddle/seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<u64>,
    /// Approval policy: when the agent must ask before it acts.
    pub approval_policy: Option<AskForApproval>,
    /// Reviewer that answers approval requests from now on.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Text that replaces the built-in system instructions.
    pub base_instructions: Option<String>,
    /// Configuration values for this thread only, keyed by dotted path (`a.b.c`).
    pub config: Option<BTreeMap<String, Value>>,
    /// Working directory of later turns; null keeps the stored one.
    pub cwd: Option<String>,
    /// Developer instructions, inserted before the conversation in addition to the system
    /// instructions.
    pub developer_instructions: Option<String>,
    /// Leaves `thread.turns` empty, for clients that page through the history. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_turns: bool,
    /// Raw items to resume from instead of the stored history; null uses the stored history. For a
    /// thread that is not running they take precedence over `path` and `threadId`.
    #[schemars(extend("x-experimental" = true))]
    pub history: Option<Vec<Value>>,
    /// Requests a first page of turns in the same response; null requests none.
    #[schemars(extend("x-experimental" = true))]
    pub initial_turns_page: Option<ThreadResumeInitialTurnsPageParams>,
    /// Model of later turns; null keeps the stored one.
    pub model: Option<String>,
    /// Id of the model provider in the configuration.
    pub model_provider: Option<String>,
    /// History file to resume from; null or empty resumes by `threadId`. For a running thread it
    /// must name the file in use.
    #[schemars(extend("x-experimental" = true))]
    pub path: Option<String>,
    /// Id of a permission profile. Cannot be combined with `sandbox`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Tone of the agent. Accepted from older clients; it no longer has any effect.
    pub personality: Option<Personality>,
    /// New root directories of the workspace, as absolute paths.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// Sandbox mode for commands. Cannot be combined with `permissions`.
    pub sandbox: Option<SandboxMode>,
    /// Service tier to request from the provider.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
}

/// Result of `thread/resume`: the thread, its effective settings and cursors to the end of its
/// history. The server then sends the open requests of the thread again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeResponse {
    /// Approval policy: when the agent must ask before it acts.
    pub approval_policy: AskForApproval,
    /// Reviewer that answers approval requests.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Absolute path of the folder in which commands run.
    pub cwd: String,
    /// Model that the thread uses.
    pub model: String,
    /// Id of the model provider in effect.
    pub model_provider: String,
    /// Sandbox policy in effect.
    pub sandbox: SandboxPolicy,
    /// The thread, with its turns unless `excludeTurns` or `afterSeq` was set.
    pub thread: Thread,
    /// Permission profile from which the sandbox policy was derived; null when there is none or it
    /// is unknown.
    #[schemars(extend("x-experimental" = true))]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// Budget limits in effect; absent when no limit is set. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Effective collaboration mode; null when the server does not report it.
    pub collaboration_mode: Option<CollaborationMode>,
    /// Ids of the plugins disabled for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// Page of turns requested by `initialTurnsPage`; null if none was requested.
    #[schemars(extend("x-experimental" = true))]
    pub initial_turns_page: Option<TurnsPage>,
    /// Paths of the instruction files that were read, such as `AGENTS.md`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub instruction_sources: Vec<String>,
    /// Cursor for `thread/items/list` with `desc`, to read items from the newest back. The first
    /// page includes the item that the cursor names. Null when there are no items.
    pub items_backwards_cursor: Option<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Reasoning effort in effect; null uses the model's default.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Root directories of the workspace, as absolute paths.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub runtime_workspace_roots: Vec<String>,
    /// Service tier requested from the provider; null means the provider's default.
    pub service_tier: Option<String>,
    /// Cursor for `thread/turns/list` with `desc`, to read turns from the newest back. The first
    /// page includes the turn that the cursor names. Null when there are no turns.
    pub turns_backwards_cursor: Option<String>,
}

/// Params of `thread/fork`, which copies a thread's history into a new thread and subscribes the
/// caller to it. A null setting overrides nothing. Forking a running thread without a cut copies
/// its turn as if it had been interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadForkParams {
    /// The source thread of the fork.
    pub thread_id: ThreadId,
    /// Approval policy of the fork: when the agent must ask before it acts.
    pub approval_policy: Option<AskForApproval>,
    /// Reviewer that answers approval requests of the fork.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Attaches the fork to its source: ordinary lists omit the fork, and it blocks the deletion of
    /// the source. False by default. Cannot be combined with `ephemeral` and
    /// `deferGoalContinuation`.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub attach_to_source: bool,
    /// Text that replaces the built-in system instructions.
    pub base_instructions: Option<String>,
    /// First turn to leave out of the fork. Cannot be combined with `lastTurnId`.
    #[schemars(extend("x-experimental" = true))]
    pub before_turn_id: Option<TurnId>,
    /// Configuration values for the fork only, keyed by dotted path (`a.b.c`).
    pub config: Option<BTreeMap<String, Value>>,
    /// Working directory of the fork.
    pub cwd: Option<String>,
    /// Copies the source's goal, but does not pursue it until the client has started a turn. False
    /// by default.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub defer_goal_continuation: bool,
    /// Developer instructions, inserted before the conversation in addition to the system
    /// instructions.
    pub developer_instructions: Option<String>,
    /// Keeps the fork in memory only. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ephemeral: bool,
    /// Leaves `thread.turns` empty, for clients that page through the history. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_turns: bool,
    /// Disables MCP servers in a prediction fork. Requires `experimentalPredictionMode`.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_disable_prediction_mcp: bool,
    /// Creates a short-lived fork that shares the settings and prompt cache of its loaded source.
    /// False by default. Requires `ephemeral`; cannot be combined with `path`, `lastTurnId` and
    /// `beforeTurnId`.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_prediction_mode: bool,
    /// Last turn to include in the fork; it must have ended. Null includes all turns.
    pub last_turn_id: Option<TurnId>,
    /// Model of the fork; null keeps the source's model.
    pub model: Option<String>,
    /// Id of the model provider in the configuration.
    pub model_provider: Option<String>,
    /// History file to fork from instead of `threadId`; null or empty uses `threadId`.
    #[schemars(extend("x-experimental" = true))]
    pub path: Option<String>,
    /// Id of a permission profile. Cannot be combined with `sandbox`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Root directories of the fork's workspace, as absolute paths.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// Sandbox mode for commands. Cannot be combined with `permissions`.
    pub sandbox: Option<SandboxMode>,
    /// Service tier to request from the provider.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// Label chosen by the client for the purpose of the fork. It has no effect.
    pub thread_source: Option<String>,
    /// Folder in which the agent works. `shared` and absence mean that of the source, which may be a
    /// copy. With `copy`, the fork gets a copy of its own, in which the files that the agent changed
    /// are as at the end of the fork's history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceMode>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/fork`: the new thread and its effective settings. `thread/started` follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadForkResponse {
    /// Approval policy: when the agent must ask before it acts.
    pub approval_policy: AskForApproval,
    /// Reviewer that answers approval requests of the fork.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Absolute path of the folder in which commands run.
    pub cwd: String,
    /// Model that the thread uses.
    pub model: String,
    /// Id of the model provider in effect.
    pub model_provider: String,
    /// Sandbox policy in effect.
    pub sandbox: SandboxPolicy,
    /// The fork: a new id, `forkedFromId` set, and its turns unless `excludeTurns` was set.
    pub thread: Thread,
    /// Permission profile from which the sandbox policy was derived; null when there is none or it
    /// is unknown.
    #[schemars(extend("x-experimental" = true))]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// Ids of the plugins disabled for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// Paths of the instruction files that were read, such as `AGENTS.md`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub instruction_sources: Vec<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Reasoning effort in effect; null uses the model's default.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Root directories of the workspace, as absolute paths.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub runtime_workspace_roots: Vec<String>,
    /// Service tier requested from the provider; null means the provider's default.
    pub service_tier: Option<String>,
    /// Files that changed after the agent left them, which are in the copy as they are now. Absent
    /// without such files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_conflicts: Option<Vec<FileConflict>>,
}

/// Params of `thread/unsubscribe`, which ends this connection's subscription to a thread. The
/// thread keeps running. Closing the connection ends all its subscriptions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnsubscribeParams {
    /// The thread to unsubscribe from.
    pub thread_id: ThreadId,
}

/// Result of `thread/unsubscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnsubscribeResponse {
    /// Outcome of the request; none of the values is an error.
    pub status: ThreadUnsubscribeStatus,
}

tagged! {
    /// A tool, or a group of tools, that the client offers to the model and runs itself.
    pub enum DynamicToolSpec by "type" {
        /// A single tool.
        Function(FunctionDynamicToolSpec) = "function",
        /// Several tools under one name.
        Namespace(NamespaceDynamicToolSpec) = "namespace",
    }
}

/// A single tool that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDynamicToolSpec {
    /// Description of the tool for the model.
    pub description: String,
    /// JSON Schema of the tool's arguments.
    pub input_schema: Value,
    /// Name by which the model calls it; `tool` in `item/tool/call`.
    pub name: String,
    /// Requests that the model sees the tool only after searching for it. False by default.
    /// Accepted without effect: the model sees every tool from the start.
    #[serde(default, deserialize_with = "null_as_default")]
    pub defer_loading: bool,
}

/// A group of tools that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceDynamicToolSpec {
    /// Description of the group for the model.
    pub description: String,
    /// Name of the group; `namespace` in `item/tool/call`.
    pub name: String,
    /// The tools of the group.
    pub tools: Vec<DynamicToolNamespaceTool>,
}

/// A directory chosen by the host, from which the server may load capabilities such as skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectedCapabilityRoot {
    /// Id chosen by the host.
    pub id: String,
    /// Location of the directory.
    pub location: CapabilityRootLocation,
}

tagged! {
    /// Location of a capability root.
    pub enum CapabilityRootLocation by "type" {
        /// A directory in an environment.
        Environment(EnvironmentCapabilityRootLocation) = "environment",
    }
}

/// A directory in an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentCapabilityRootLocation {
    /// Id of the environment.
    pub environment_id: String,
    /// Absolute path of the directory in that environment.
    pub path: String,
}

open_enum! {
    /// Reason for a `thread/start`.
    pub enum ThreadStartSource {
        /// The client has just started.
        Startup = "startup",
        /// The user cleared the previous conversation to start over.
        Clear = "clear",
    }
}

/// Page of turns that `thread/resume` returns, as for `thread/turns/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeInitialTurnsPageParams {
    /// How much of each turn's items to include. Null means `summary`.
    pub items_view: Option<TurnItemsView>,
    /// Maximum number of turns on the page. Null means 25; values outside 1 to 100 are clamped.
    pub limit: Option<u32>,
    /// Sort order. Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
}

/// One page of a thread's turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnsPage {
    /// One page of turns, in the requested order.
    pub data: Vec<Turn>,
    /// Cursor for reading in the opposite direction from the page's first turn; null on an empty
    /// page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

open_enum! {
    /// Outcome of `thread/unsubscribe`.
    pub enum ThreadUnsubscribeStatus {
        /// The thread is not loaded, so it has no subscribers.
        NotLoaded = "notLoaded",
        /// This connection was not subscribed.
        NotSubscribed = "notSubscribed",
        /// The subscription has ended.
        Unsubscribed = "unsubscribed",
    }
}

tagged! {
    /// A member of a group of tools that the client runs.
    pub enum DynamicToolNamespaceTool by "type" {
        /// A single tool.
        Function(FunctionDynamicToolNamespaceTool) = "function",
    }
}

/// A single tool inside a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDynamicToolNamespaceTool {
    /// Description of the tool for the model.
    pub description: String,
    /// JSON Schema of the tool's arguments.
    pub input_schema: Value,
    /// Name within the group; `tool` in `item/tool/call`.
    pub name: String,
    /// Requests that the model sees the tool only after searching for it. False by default.
    /// Accepted without effect: the model sees every tool from the start.
    #[serde(default, deserialize_with = "null_as_default")]
    pub defer_loading: bool,
}
