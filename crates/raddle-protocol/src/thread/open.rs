//! Starting, resuming, forking and leaving a thread: the params and results of `thread/start`,
//! `thread/resume`, `thread/fork` and `thread/unsubscribe`, and what they are made of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `thread/start`, which makes a thread and subscribes the caller to it.
/// Every member is optional. A setting that is null or absent comes from the config.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartParams {
    /// Lets a provider with a fixed list of models use its default when `model` is not on it.
    /// False by default.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub allow_provider_model_fallback: bool,
    /// When the agent must ask before it acts.
    pub approval_policy: Option<AskForApproval>,
    /// Who answers the approvals of this thread.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Text that takes the place of the built-in system instructions.
    pub base_instructions: Option<String>,
    /// Config values for this thread only, keyed by dotted path (`a.b.c`).
    pub config: Option<BTreeMap<String, Value>>,
    /// Working directory. It need not exist yet.
    pub cwd: Option<String>,
    /// A product switch stored with the thread; null leaves it unset. Not for ephemeral threads.
    #[schemars(extend("x-experimental" = true))]
    pub daybreak_enabled: Option<bool>,
    /// Instructions put before the conversation, beside the system instructions.
    pub developer_instructions: Option<String>,
    /// Tools that the client runs itself when the server sends `item/tool/call`; at most 128.
    #[schemars(extend("x-experimental" = true))]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// Places in which the thread's tools run; the first is the main one.
    /// Null takes the default place, an empty list gives the thread none.
    #[schemars(extend("x-experimental" = true))]
    pub environments: Option<Vec<TurnEnvironmentParams>>,
    /// Keeps the thread in memory only. Null means false.
    pub ephemeral: Option<bool>,
    /// Also sends the model's items as the provider wrote them. False by default.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_raw_events: bool,
    /// How clients fetch the thread's history. Null leaves the choice to the server.
    #[schemars(extend("x-experimental" = true))]
    pub history_mode: Option<ThreadHistoryMode>,
    /// Has no effect; it exists to test the gate for experimental members.
    #[schemars(extend("x-experimental" = true))]
    pub mock_experimental_field: Option<String>,
    /// Model to use.
    pub model: Option<String>,
    /// Id of the model's provider, as the config names it.
    pub model_provider: Option<String>,
    /// Accepted from older clients and ignored.
    #[schemars(extend("x-experimental" = true))]
    pub multi_agent_mode: Option<MultiAgentMode>,
    /// Id of a permission profile. Excludes `sandbox`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Tone of the agent. Kept for older clients; the styles no longer differ.
    pub personality: Option<Personality>,
    /// Project the thread is filed under; null files it under none.
    #[schemars(extend("x-experimental" = true))]
    pub project_id: Option<String>,
    /// Absolute paths that make up the workspace.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// How far commands are fenced in. Excludes `permissions`.
    pub sandbox: Option<SandboxMode>,
    /// Folders from which the host wants capabilities loaded.
    #[schemars(extend("x-experimental" = true))]
    pub selected_capability_roots: Option<Vec<SelectedCapabilityRoot>>,
    /// Name of the client's service, for metrics.
    pub service_name: Option<String>,
    /// Tier of service to ask of the provider.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// What led to the start; hooks may look at it. Null counts as `startup`.
    pub session_start_source: Option<ThreadStartSource>,
    /// The client's own label for why the thread exists, such as `user`. It changes nothing.
    pub thread_source: Option<String>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/start`: the new thread and the settings in force.
/// `thread/started` follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartResponse {
    /// When the agent asks before it acts.
    pub approval_policy: AskForApproval,
    /// Who answers the approvals of this thread.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Absolute working directory.
    pub cwd: String,
    /// Model in use.
    pub model: String,
    /// Id of the provider in use.
    pub model_provider: String,
    /// The fence in force, spelled out.
    pub sandbox: SandboxPolicy,
    /// The new thread, without turns.
    pub thread: Thread,
    /// Profile from which the fence was made; null when it came from none or is unknown.
    #[schemars(extend("x-experimental" = true))]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// Plugins switched off for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// Paths of the instruction files that were read, such as `AGENTS.md`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub instruction_sources: Vec<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Reasoning effort in force; null leaves it to the model.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Absolute paths that make up the workspace.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub runtime_workspace_roots: Vec<String>,
    /// Tier of service asked of the provider; null is the provider's default.
    pub service_tier: Option<String>,
}

/// Params of `thread/resume`, which loads a stored thread or rejoins a loaded one.
/// The caller is subscribed to it. A setting left null overrides nothing, and every setting is
/// ignored if the thread is running or has a subscriber already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeParams {
    /// The thread to resume.
    pub thread_id: ThreadId,
    /// The last `seq` the client was told. What it missed since then is told after the answer, which has no
    /// turns. Null begins with the thread as it is. Needs the extension `raddle/seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seq: Option<u64>,
    /// When the agent must ask before it acts.
    pub approval_policy: Option<AskForApproval>,
    /// Who answers the approvals of this thread from now on.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Text that takes the place of the built-in system instructions.
    pub base_instructions: Option<String>,
    /// Config values for this thread only, keyed by dotted path (`a.b.c`).
    pub config: Option<BTreeMap<String, Value>>,
    /// Working directory from now on.
    pub cwd: Option<String>,
    /// Instructions put before the conversation, beside the system instructions.
    pub developer_instructions: Option<String>,
    /// Leaves `thread.turns` empty, for clients that page through the history. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_turns: bool,
    /// Raw items to resume from instead of the stored history; null uses what is stored.
    /// For a thread that is not running they win over `path` and `threadId`.
    #[schemars(extend("x-experimental" = true))]
    pub history: Option<Vec<Value>>,
    /// Asks for a first page of turns in the same answer; null asks for none.
    #[schemars(extend("x-experimental" = true))]
    pub initial_turns_page: Option<ThreadResumeInitialTurnsPageParams>,
    /// Model to use from now on.
    pub model: Option<String>,
    /// Id of the model's provider, as the config names it.
    pub model_provider: Option<String>,
    /// History file to resume from; null or empty goes by `threadId`.
    /// For a running thread it must name the file in use.
    #[schemars(extend("x-experimental" = true))]
    pub path: Option<String>,
    /// Id of a permission profile. Excludes `sandbox`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Tone of the agent. Kept for older clients; the styles no longer differ.
    pub personality: Option<Personality>,
    /// Absolute paths that become the workspace.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// How far commands are fenced in. Excludes `permissions`.
    pub sandbox: Option<SandboxMode>,
    /// Tier of service to ask of the provider.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
}

/// Result of `thread/resume`: the thread, the settings in force and where its history ends.
/// Requests of the thread that are still open are sent again after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeResponse {
    /// When the agent asks before it acts.
    pub approval_policy: AskForApproval,
    /// Who answers the approvals of this thread.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Absolute working directory.
    pub cwd: String,
    /// Model in use.
    pub model: String,
    /// Id of the provider in use.
    pub model_provider: String,
    /// The fence in force, spelled out.
    pub sandbox: SandboxPolicy,
    /// The thread, with its turns unless `excludeTurns` or `afterSeq` was set.
    pub thread: Thread,
    /// Profile from which the fence was made; null when it came from none or is unknown.
    #[schemars(extend("x-experimental" = true))]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// Collaboration mode in force; null when the server does not say.
    pub collaboration_mode: Option<CollaborationMode>,
    /// Plugins switched off for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// The page of turns that `initialTurnsPage` asked for; null if it did not.
    #[schemars(extend("x-experimental" = true))]
    pub initial_turns_page: Option<TurnsPage>,
    /// Paths of the instruction files that were read, such as `AGENTS.md`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub instruction_sources: Vec<String>,
    /// Cursor for `thread/items/list`, to read items from the newest back with `desc`.
    /// The item it names is on the first page. Null when there is nothing to page through.
    pub items_backwards_cursor: Option<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Reasoning effort in force; null leaves it to the model.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Absolute paths that make up the workspace.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub runtime_workspace_roots: Vec<String>,
    /// Tier of service asked of the provider; null is the provider's default.
    pub service_tier: Option<String>,
    /// Cursor for `thread/turns/list`, to read turns from the newest back with `desc`.
    /// The turn it names is on the first page. Null when there is nothing to page through.
    pub turns_backwards_cursor: Option<String>,
}

/// Params of `thread/fork`, which copies a thread's history into a new thread.
/// The caller is subscribed to the fork. A setting left null overrides nothing. A running thread
/// forked without a cut is copied as if its turn had been interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadForkParams {
    /// The source thread.
    pub thread_id: ThreadId,
    /// When the agent must ask before it acts in the fork.
    pub approval_policy: Option<AskForApproval>,
    /// Who answers the approvals of the fork.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Hangs the fork on its source: ordinary lists leave it out, and it blocks the source's deletion.
    /// False by default. Excludes `ephemeral` and `deferGoalContinuation`.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub attach_to_source: bool,
    /// Text that takes the place of the built-in system instructions.
    pub base_instructions: Option<String>,
    /// Cuts before this turn, which is left out. Excludes `lastTurnId`.
    #[schemars(extend("x-experimental" = true))]
    pub before_turn_id: Option<TurnId>,
    /// Config values for the fork only, keyed by dotted path (`a.b.c`).
    pub config: Option<BTreeMap<String, Value>>,
    /// Working directory of the fork.
    pub cwd: Option<String>,
    /// Copies the source's goal but does not work on it until the client has started a turn.
    /// False by default.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub defer_goal_continuation: bool,
    /// Instructions put before the conversation, beside the system instructions.
    pub developer_instructions: Option<String>,
    /// Keeps the fork in memory only. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub ephemeral: bool,
    /// Leaves `thread.turns` empty, for clients that page through the history. False by default.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_turns: bool,
    /// Leaves MCP servers out of a prediction fork. Needs `experimentalPredictionMode`.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_disable_prediction_mcp: bool,
    /// Makes a short-lived fork that shares its loaded source's settings and prompt cache.
    /// False by default. Needs `ephemeral`; excludes `path` and both cuts.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_prediction_mode: bool,
    /// Cuts after this turn, which is kept and must have ended. Null cuts nothing off.
    pub last_turn_id: Option<TurnId>,
    /// Model to use in the fork.
    pub model: Option<String>,
    /// Id of the model's provider, as the config names it.
    pub model_provider: Option<String>,
    /// History file to fork from, in place of `threadId`; null or empty goes by `threadId`.
    #[schemars(extend("x-experimental" = true))]
    pub path: Option<String>,
    /// Id of a permission profile. Excludes `sandbox`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Absolute paths that become the fork's workspace.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// How far commands are fenced in. Excludes `permissions`.
    pub sandbox: Option<SandboxMode>,
    /// Tier of service to ask of the provider.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// The client's own label for why the fork exists. It changes nothing.
    pub thread_source: Option<String>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `thread/fork`: the new thread and the settings in force.
/// `thread/started` follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadForkResponse {
    /// When the agent asks before it acts.
    pub approval_policy: AskForApproval,
    /// Who answers the approvals of the fork.
    pub approvals_reviewer: ApprovalsReviewer,
    /// Absolute working directory.
    pub cwd: String,
    /// Model in use.
    pub model: String,
    /// Id of the provider in use.
    pub model_provider: String,
    /// The fence in force, spelled out.
    pub sandbox: SandboxPolicy,
    /// The fork: a new id, `forkedFromId` set, and its turns unless `excludeTurns` was set.
    pub thread: Thread,
    /// Profile from which the fence was made; null when it came from none or is unknown.
    #[schemars(extend("x-experimental" = true))]
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// Plugins switched off for this thread.
    #[serde(default, deserialize_with = "null_as_default")]
    pub disabled_plugin_ids: Vec<String>,
    /// Paths of the instruction files that were read, such as `AGENTS.md`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub instruction_sources: Vec<String>,
    /// Always `explicitRequestOnly`; kept for older clients.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub multi_agent_mode: MultiAgentMode,
    /// Reasoning effort in force; null leaves it to the model.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Absolute paths that make up the workspace.
    #[schemars(extend("x-experimental" = true))]
    #[serde(default, deserialize_with = "null_as_default")]
    pub runtime_workspace_roots: Vec<String>,
    /// Tier of service asked of the provider; null is the provider's default.
    pub service_tier: Option<String>,
}

/// Params of `thread/unsubscribe`, which ends this connection's interest in a thread.
/// The thread goes on. Closing the connection unsubscribes from everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnsubscribeParams {
    /// The thread to leave.
    pub thread_id: ThreadId,
}

/// Result of `thread/unsubscribe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnsubscribeResponse {
    /// What was found; none of the three is an error.
    pub status: ThreadUnsubscribeStatus,
}

tagged! {
    /// A tool, or a group of tools, that the client offers to the model and runs itself.
    pub enum DynamicToolSpec by "type" {
        /// One tool.
        Function(FunctionDynamicToolSpec) = "function",
        /// Several tools under one name.
        Namespace(NamespaceDynamicToolSpec) = "namespace",
    }
}

/// One tool that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDynamicToolSpec {
    /// What the model is told about the tool.
    pub description: String,
    /// JSON Schema of the tool's arguments.
    pub input_schema: Value,
    /// Name by which the model calls it; `tool` in `item/tool/call`.
    pub name: String,
    /// Asks that the model be shown the tool only once it looks for it. False by default. It is taken and
    /// changes nothing: every tool is shown from the beginning.
    #[serde(default, deserialize_with = "null_as_default")]
    pub defer_loading: bool,
}

/// A group of tools that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceDynamicToolSpec {
    /// What the model is told about the group.
    pub description: String,
    /// Name of the group; `namespace` in `item/tool/call`.
    pub name: String,
    /// The tools of the group.
    pub tools: Vec<DynamicToolNamespaceTool>,
}

/// A place in which tools run, as a client selects it for a thread or a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnvironmentParams {
    /// Working directory, as that place spells paths.
    pub cwd: String,
    /// Id of the environment.
    pub environment_id: String,
    /// Paths that make up the workspace there. Null means `cwd` alone.
    pub runtime_workspace_roots: Option<Vec<String>>,
}

/// A folder chosen by the host, from which capabilities such as skills may be loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectedCapabilityRoot {
    /// Id the host gave it.
    pub id: String,
    /// Where it is.
    pub location: CapabilityRootLocation,
}

tagged! {
    /// Where a capability root is.
    pub enum CapabilityRootLocation by "type" {
        /// In an environment.
        Environment(EnvironmentCapabilityRootLocation) = "environment",
    }
}

/// A folder in an environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentCapabilityRootLocation {
    /// Id of the environment.
    pub environment_id: String,
    /// Absolute path of the folder there.
    pub path: String,
}

open_enum! {
    /// What led to a `thread/start`.
    pub enum ThreadStartSource {
        /// The client has just opened.
        Startup = "startup",
        /// The user put the old conversation away to begin afresh.
        Clear = "clear",
    }
}

/// Which page of turns `thread/resume` shall bring along, as for `thread/turns/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResumeInitialTurnsPageParams {
    /// How much of each turn's items to include. Null means `summary`.
    pub items_view: Option<TurnItemsView>,
    /// Most turns on the page. Null means 25; values out of range are brought into 1 to 100.
    pub limit: Option<u32>,
    /// Null means `desc`, newest first.
    pub sort_direction: Option<SortDirection>,
}

/// One page of a thread's turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnsPage {
    /// The turns, in the order asked for.
    pub data: Vec<Turn>,
    /// Cursor for reading the other way from the page's first turn; null on an empty page.
    pub backwards_cursor: Option<String>,
    /// Cursor for the next page; null on the last.
    pub next_cursor: Option<String>,
}

open_enum! {
    /// What `thread/unsubscribe` found.
    pub enum ThreadUnsubscribeStatus {
        /// The thread is not in memory, so nobody is subscribed.
        NotLoaded = "notLoaded",
        /// This connection was not subscribed.
        NotSubscribed = "notSubscribed",
        /// The subscription was ended.
        Unsubscribed = "unsubscribed",
    }
}

tagged! {
    /// A member of a group of tools that the client runs.
    pub enum DynamicToolNamespaceTool by "type" {
        /// One tool.
        Function(FunctionDynamicToolNamespaceTool) = "function",
    }
}

/// One tool inside a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDynamicToolNamespaceTool {
    /// What the model is told about the tool.
    pub description: String,
    /// JSON Schema of the tool's arguments.
    pub input_schema: Value,
    /// Name within the group; `tool` in `item/tool/call`.
    pub name: String,
    /// Asks that the model be shown the tool only once it looks for it. False by default. It is taken and
    /// changes nothing: every tool is shown from the beginning.
    #[serde(default, deserialize_with = "null_as_default")]
    pub defer_loading: bool,
}
