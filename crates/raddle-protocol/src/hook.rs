//! Hooks: handlers for events in the lifecycle of a thread, their listing, and notifications about
//! their runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `hooks/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksListParams {
    /// Lists the hooks that this loaded thread would run; `cwds` must be empty then. Null lists by
    /// `cwds`.
    pub thread_id: Option<ThreadId>,
    /// Directories whose hooks to list. Empty means the server's own working directory.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cwds: Vec<String>,
}

/// Result of `hooks/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksListResponse {
    /// One entry per requested directory.
    pub data: Vec<HooksListEntry>,
}

/// `hook/started`: a hook run has started. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStartedNotification {
    /// Thread for which the hook runs.
    pub thread_id: ThreadId,
    /// Turn in which the hook runs; null outside a turn.
    pub turn_id: Option<TurnId>,
    /// The run so far, `running` and without output.
    pub run: HookRunSummary,
}

/// `hook/completed`: a hook run has ended. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookCompletedNotification {
    /// Thread for which the hook ran.
    pub thread_id: ThreadId,
    /// Turn in which the hook ran; null outside a turn.
    pub turn_id: Option<TurnId>,
    /// The finished run, with the same `id` as in `hook/started`.
    pub run: HookRunSummary,
}

/// The hooks of one directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksListEntry {
    /// The directory of the hooks.
    pub cwd: String,
    /// Hook files that could not be used.
    pub errors: Vec<HookErrorInfo>,
    /// The hooks, including disabled and untrusted ones.
    pub hooks: Vec<HookMetadata>,
    /// Human-readable warnings about the hook files.
    pub warnings: Vec<String>,
}

/// One run of one hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRunSummary {
    /// Id of the run; the same in `hook/started` and `hook/completed`.
    pub id: String,
    /// Display order; lower comes first.
    pub display_order: i64,
    /// Output of the run; empty while it runs.
    pub entries: Vec<HookOutputEntry>,
    /// Event that triggered the run.
    pub event_name: HookEventName,
    /// Whether the thread waits for it.
    pub execution_mode: HookExecutionMode,
    /// Type of the handler.
    pub handler_type: HookHandlerType,
    /// Whether it belongs to the thread or to a turn.
    pub scope: HookScope,
    /// The file that defines the hook.
    pub source_path: String,
    /// Start time, in seconds since the epoch.
    pub started_at: i64,
    /// Current status of the run.
    pub status: HookRunStatus,
    /// End time, in seconds since the epoch; null while the hook runs.
    pub completed_at: Option<i64>,
    /// Duration in milliseconds; null while the hook runs.
    pub duration_ms: Option<i64>,
    /// Configuration layer that defines the hook. Absent means `unknown`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub source: HookSource,
    /// Status line to display while the hook runs; null if none was set.
    pub status_message: Option<String>,
}

/// A hook file that could not be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookErrorInfo {
    /// Description of the problem.
    pub message: String,
    /// Path of the hook file.
    pub path: String,
}

tagged! {
    /// One configured hook, distinguished by its handler type.
    pub enum HookMetadata by "handlerType" {
        /// Runs a shell command.
        Command(CommandHookMetadata) = "command",
        /// Calls a tool of an MCP server.
        McpTool(McpToolHookMetadata) = "mcpTool",
        /// Sends a prompt to a model.
        Prompt(PromptHookMetadata) = "prompt",
        /// Delegates to an agent.
        Agent(AgentHookMetadata) = "agent",
    }
}

/// A hook that runs a shell command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandHookMetadata {
    /// Command line of the hook.
    pub command: String,
    /// Hash of the current definition; trusting the hook records it.
    pub current_hash: String,
    /// Display order; lower comes first.
    pub display_order: i64,
    /// Whether the hook is enabled.
    pub enabled: bool,
    /// Event that triggers the hook.
    pub event_name: HookEventName,
    /// Whether an administrator set the hook, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Key of the hook in the configuration, which stores its trust and whether it is enabled.
    pub key: String,
    /// Configuration layer that defines the hook.
    pub source: HookSource,
    /// Absolute path of the file that defines the hook.
    pub source_path: String,
    /// Timeout of a run in seconds.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// Whether the thread continues without waiting for the hook. Absent means false.
    #[serde(rename = "async")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub run_async: bool,
    /// Maximum number of tokens of added context sent to the model directly; longer context is
    /// moved to a file. Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// Execution environment that requires the hook; null when none does.
    pub environment_id: Option<String>,
    /// Filter for the event, often a pattern over tool names. Null matches all.
    pub matcher: Option<String>,
    /// Plugin that provides it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// Status line to display while the hook runs; null if none was set.
    pub status_message: Option<String>,
}

/// A hook that calls a tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolHookMetadata {
    /// The MCP server's name in the configuration.
    pub server: String,
    /// Name of the tool to call.
    pub tool: String,
    /// Hash of the current definition; trusting the hook records it.
    pub current_hash: String,
    /// Display order; lower comes first.
    pub display_order: i64,
    /// Whether the hook is enabled.
    pub enabled: bool,
    /// Event that triggers the hook.
    pub event_name: HookEventName,
    /// Whether an administrator set the hook, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Key of the hook in the configuration, which stores its trust and whether it is enabled.
    pub key: String,
    /// Configuration layer that defines the hook.
    pub source: HookSource,
    /// Absolute path of the file that defines the hook.
    pub source_path: String,
    /// Timeout of a run in seconds.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// Maximum number of tokens of added context sent to the model directly; longer context is
    /// moved to a file. Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// Execution environment that requires the hook; null when none does.
    pub environment_id: Option<String>,
    /// Filter for the event, often a pattern over tool names. Null matches all.
    pub matcher: Option<String>,
    /// Plugin that provides it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// Status line to display while the hook runs; null if none was set.
    pub status_message: Option<String>,
}

/// A hook that sends a prompt to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptHookMetadata {
    /// Hash of the current definition; trusting the hook records it.
    pub current_hash: String,
    /// Display order; lower comes first.
    pub display_order: i64,
    /// Whether the hook is enabled.
    pub enabled: bool,
    /// Event that triggers the hook.
    pub event_name: HookEventName,
    /// Whether an administrator set the hook, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Key of the hook in the configuration, which stores its trust and whether it is enabled.
    pub key: String,
    /// Configuration layer that defines the hook.
    pub source: HookSource,
    /// Absolute path of the file that defines the hook.
    pub source_path: String,
    /// Timeout of a run in seconds.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// Maximum number of tokens of added context sent to the model directly; longer context is
    /// moved to a file. Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// Execution environment that requires the hook; null when none does.
    pub environment_id: Option<String>,
    /// Filter for the event, often a pattern over tool names. Null matches all.
    pub matcher: Option<String>,
    /// Plugin that provides it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// Status line to display while the hook runs; null if none was set.
    pub status_message: Option<String>,
}

/// A hook that delegates to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentHookMetadata {
    /// Hash of the current definition; trusting the hook records it.
    pub current_hash: String,
    /// Display order; lower comes first.
    pub display_order: i64,
    /// Whether the hook is enabled.
    pub enabled: bool,
    /// Event that triggers the hook.
    pub event_name: HookEventName,
    /// Whether an administrator set the hook, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Key of the hook in the configuration, which stores its trust and whether it is enabled.
    pub key: String,
    /// Configuration layer that defines the hook.
    pub source: HookSource,
    /// Absolute path of the file that defines the hook.
    pub source_path: String,
    /// Timeout of a run in seconds.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// Maximum number of tokens of added context sent to the model directly; longer context is
    /// moved to a file. Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// Execution environment that requires the hook; null when none does.
    pub environment_id: Option<String>,
    /// Filter for the event, often a pattern over tool names. Null matches all.
    pub matcher: Option<String>,
    /// Plugin that provides it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// Status line to display while the hook runs; null if none was set.
    pub status_message: Option<String>,
}

/// One output entry of a hook run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookOutputEntry {
    /// Purpose of the text.
    pub kind: HookOutputEntryKind,
    /// Text of the entry.
    pub text: String,
}

open_enum! {
    /// Events in the lifecycle of a thread to which a hook can be attached.
    pub enum HookEventName {
        /// Before the model is called.
        PreModelRequest = "preModelRequest",
        /// After the model has responded.
        PostModelRequest = "postModelRequest",
        /// Before a tool runs; the hook may block it.
        PreToolUse = "preToolUse",
        /// When approval is needed, before a reviewer is asked; the hook may decide.
        PermissionRequest = "permissionRequest",
        /// After a tool has run.
        PostToolUse = "postToolUse",
        /// Before the context is compacted.
        PreCompact = "preCompact",
        /// After the context has been compacted.
        PostCompact = "postCompact",
        /// When a thread starts, is resumed or is cleared.
        SessionStart = "sessionStart",
        /// When a thread is closed.
        SessionEnd = "sessionEnd",
        /// When user input arrives, before the model sees it; the hook may block it.
        UserPromptSubmit = "userPromptSubmit",
        /// When a sub-agent starts.
        SubagentStart = "subagentStart",
        /// When a sub-agent is about to finish.
        SubagentStop = "subagentStop",
        /// When the agent is about to end its turn; the hook may make it continue.
        Stop = "stop",
        /// When a turn is interrupted.
        Interrupt = "interrupt",
    }
}

open_enum! {
    /// Whether the thread waits for a hook.
    pub enum HookExecutionMode {
        /// The thread waits, and the hook can change the outcome.
        Sync = "sync",
        /// The thread continues immediately.
        Async = "async",
    }
}

open_enum! {
    /// Type of a hook handler.
    pub enum HookHandlerType {
        /// A shell command.
        Command = "command",
        /// A tool of an MCP server.
        McpTool = "mcpTool",
        /// A prompt to a model.
        Prompt = "prompt",
        /// An agent that handles the event.
        Agent = "agent",
    }
}

open_enum! {
    /// Scope of a hook run.
    pub enum HookScope {
        /// The thread as a whole.
        Thread = "thread",
        /// A single turn.
        Turn = "turn",
    }
}

open_enum! {
    /// Status of a hook run.
    pub enum HookRunStatus {
        /// The run has not ended.
        Running = "running",
        /// The run ended and allows the action.
        Completed = "completed",
        /// The run failed, timed out or returned an invalid response.
        Failed = "failed",
        /// The hook rejected the action.
        Blocked = "blocked",
        /// The hook requested the end of the work.
        Stopped = "stopped",
    }
}

open_enum! {
    /// Configuration layer that defines a hook.
    pub enum HookSource or Unknown {
        /// The machine's configuration.
        System = "system",
        /// The user's configuration.
        User = "user",
        /// The project's configuration.
        Project = "project",
        /// Device management of the machine.
        Mdm = "mdm",
        /// Settings from the command line or from the start of the thread.
        SessionFlags = "sessionFlags",
        /// An installed plugin.
        Plugin = "plugin",
        /// Cloud requirements of an organisation.
        CloudRequirements = "cloudRequirements",
        /// Cloud configuration of an organisation.
        CloudManagedConfig = "cloudManagedConfig",
        /// A legacy managed file of an administrator.
        LegacyManagedConfigFile = "legacyManagedConfigFile",
        /// Legacy settings of device management.
        LegacyManagedConfigMdm = "legacyManagedConfigMdm",
        /// The layer is not recorded.
        Unknown = "unknown",
    }
}

open_enum! {
    /// Whether the user trusts a hook, and so whether it may run.
    pub enum HookTrustStatus {
        /// Set by an administrator; needs no approval.
        Managed = "managed",
        /// Never approved; it does not run.
        Untrusted = "untrusted",
        /// Approved in its current definition.
        Trusted = "trusted",
        /// Changed since it was approved; it does not run until approved again.
        Modified = "modified",
    }
}

open_enum! {
    /// Purpose of a hook's output entry.
    pub enum HookOutputEntryKind {
        /// Warning for the user.
        Warning = "warning",
        /// Reason why the hook ended the work.
        Stop = "stop",
        /// Feedback for the model: why an action was blocked, or the next step.
        Feedback = "feedback",
        /// Additional context for the model.
        Context = "context",
        /// Error of the hook itself.
        Error = "error",
    }
}
