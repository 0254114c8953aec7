//! Hooks: handlers attached to points in a thread's life, how they are listed, and how a run is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `hooks/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksListParams {
    /// List what this loaded thread would run; leave `cwds` empty then. Null goes by `cwds`.
    pub thread_id: Option<ThreadId>,
    /// Directories to look up hooks for. Empty means the server's own working directory.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cwds: Vec<String>,
}

/// Result of `hooks/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksListResponse {
    /// One entry per directory asked for.
    pub data: Vec<HooksListEntry>,
}

/// `hook/started`: a hook has begun to run. Told to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookStartedNotification {
    /// The thread it runs for.
    pub thread_id: ThreadId,
    /// The turn it runs in; null outside a turn.
    pub turn_id: Option<TurnId>,
    /// The run so far, `running` and without output.
    pub run: HookRunSummary,
}

/// `hook/completed`: a hook has ended. Told to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookCompletedNotification {
    /// The thread it ran for.
    pub thread_id: ThreadId,
    /// The turn it ran in; null outside a turn.
    pub turn_id: Option<TurnId>,
    /// The finished run, with the same `id` as in `hook/started`.
    pub run: HookRunSummary,
}

/// The hooks found for one directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksListEntry {
    /// The directory.
    pub cwd: String,
    /// Hook files that could not be used.
    pub errors: Vec<HookErrorInfo>,
    /// The hooks, disabled and untrusted ones included.
    pub hooks: Vec<HookMetadata>,
    /// Lesser troubles met while reading, for people to read.
    pub warnings: Vec<String>,
}

/// One run of one hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRunSummary {
    /// Names the run; `hook/started` and `hook/completed` share it.
    pub id: String,
    /// Where to show it among the others; lower comes first.
    pub display_order: i64,
    /// What it said; empty while it runs.
    pub entries: Vec<HookOutputEntry>,
    /// The point in the thread's life that set it off.
    pub event_name: HookEventName,
    /// Whether the thread waits for it.
    pub execution_mode: HookExecutionMode,
    /// What kind of handler runs.
    pub handler_type: HookHandlerType,
    /// Whether it belongs to the thread or to a turn.
    pub scope: HookScope,
    /// The file that defines the hook.
    pub source_path: String,
    /// When it began, in seconds since the epoch.
    pub started_at: i64,
    /// Where it stands.
    pub status: HookRunStatus,
    /// When it ended, in seconds since the epoch; null while it runs.
    pub completed_at: Option<i64>,
    /// How long it took, in milliseconds; null while it runs.
    pub duration_ms: Option<i64>,
    /// Which layer of the configuration defines the hook. Absent means `unknown`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub source: HookSource,
    /// A line to show while it runs, from its definition; null if none was set.
    pub status_message: Option<String>,
}

/// A hook file that could not be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookErrorInfo {
    /// What is wrong with it.
    pub message: String,
    /// The file.
    pub path: String,
}

tagged! {
    /// One hook as configured, told apart by what handles it.
    pub enum HookMetadata by "handlerType" {
        /// Runs a shell command.
        Command(CommandHookMetadata) = "command",
        /// Calls a tool of an MCP server.
        McpTool(McpToolHookMetadata) = "mcpTool",
        /// Puts a prompt to a model.
        Prompt(PromptHookMetadata) = "prompt",
        /// Hands over to an agent.
        Agent(AgentHookMetadata) = "agent",
    }
}

/// A hook that runs a shell command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandHookMetadata {
    /// The command line.
    pub command: String,
    /// A fingerprint of the definition as it is now; trusting a hook records it.
    pub current_hash: String,
    /// Where to show it among the others; lower comes first.
    pub display_order: i64,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The point in the thread's life that sets it off.
    pub event_name: HookEventName,
    /// Whether an administrator set it, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Names the hook in the configuration, where its trust and its switch are kept.
    pub key: String,
    /// Which layer of the configuration defines it.
    pub source: HookSource,
    /// The file that defines it, as an absolute path.
    pub source_path: String,
    /// After how many seconds a run is stopped.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// Whether the thread goes on without waiting for it. Absent means false.
    #[serde(rename = "async")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub run_async: bool,
    /// How many tokens of added context go to the model whole; more is moved to a file.
    /// Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// The execution environment that demands it; null when none does.
    pub environment_id: Option<String>,
    /// Which occasions of the event it answers, often a pattern over tool names. Null answers all.
    pub matcher: Option<String>,
    /// The plugin that brought it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// A line to show while it runs; null if none was set.
    pub status_message: Option<String>,
}

/// A hook that calls a tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolHookMetadata {
    /// The MCP server's name in the configuration.
    pub server: String,
    /// The tool to call.
    pub tool: String,
    /// A fingerprint of the definition as it is now; trusting a hook records it.
    pub current_hash: String,
    /// Where to show it among the others; lower comes first.
    pub display_order: i64,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The point in the thread's life that sets it off.
    pub event_name: HookEventName,
    /// Whether an administrator set it, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Names the hook in the configuration, where its trust and its switch are kept.
    pub key: String,
    /// Which layer of the configuration defines it.
    pub source: HookSource,
    /// The file that defines it, as an absolute path.
    pub source_path: String,
    /// After how many seconds a run is stopped.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// How many tokens of added context go to the model whole; more is moved to a file.
    /// Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// The execution environment that demands it; null when none does.
    pub environment_id: Option<String>,
    /// Which occasions of the event it answers, often a pattern over tool names. Null answers all.
    pub matcher: Option<String>,
    /// The plugin that brought it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// A line to show while it runs; null if none was set.
    pub status_message: Option<String>,
}

/// A hook that puts a prompt to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptHookMetadata {
    /// A fingerprint of the definition as it is now; trusting a hook records it.
    pub current_hash: String,
    /// Where to show it among the others; lower comes first.
    pub display_order: i64,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The point in the thread's life that sets it off.
    pub event_name: HookEventName,
    /// Whether an administrator set it, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Names the hook in the configuration, where its trust and its switch are kept.
    pub key: String,
    /// Which layer of the configuration defines it.
    pub source: HookSource,
    /// The file that defines it, as an absolute path.
    pub source_path: String,
    /// After how many seconds a run is stopped.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// How many tokens of added context go to the model whole; more is moved to a file.
    /// Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// The execution environment that demands it; null when none does.
    pub environment_id: Option<String>,
    /// Which occasions of the event it answers, often a pattern over tool names. Null answers all.
    pub matcher: Option<String>,
    /// The plugin that brought it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// A line to show while it runs; null if none was set.
    pub status_message: Option<String>,
}

/// A hook that hands over to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentHookMetadata {
    /// A fingerprint of the definition as it is now; trusting a hook records it.
    pub current_hash: String,
    /// Where to show it among the others; lower comes first.
    pub display_order: i64,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The point in the thread's life that sets it off.
    pub event_name: HookEventName,
    /// Whether an administrator set it, so that the user can neither change nor disable it.
    pub is_managed: bool,
    /// Names the hook in the configuration, where its trust and its switch are kept.
    pub key: String,
    /// Which layer of the configuration defines it.
    pub source: HookSource,
    /// The file that defines it, as an absolute path.
    pub source_path: String,
    /// After how many seconds a run is stopped.
    pub timeout_sec: u64,
    /// Whether the user has approved this definition.
    pub trust_status: HookTrustStatus,
    /// How many tokens of added context go to the model whole; more is moved to a file.
    /// Null means 2500, and 0 means no limit.
    pub additional_context_limit: Option<u64>,
    /// The execution environment that demands it; null when none does.
    pub environment_id: Option<String>,
    /// Which occasions of the event it answers, often a pattern over tool names. Null answers all.
    pub matcher: Option<String>,
    /// The plugin that brought it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// A line to show while it runs; null if none was set.
    pub status_message: Option<String>,
}

/// One thing a hook run said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookOutputEntry {
    /// What the text is for.
    pub kind: HookOutputEntryKind,
    /// The text.
    pub text: String,
}

open_enum! {
    /// The points in a thread's life that a hook can be attached to.
    pub enum HookEventName {
        /// Before the model is called.
        PreModelRequest = "preModelRequest",
        /// After the model has answered.
        PostModelRequest = "postModelRequest",
        /// Before a tool runs; the hook may block it.
        PreToolUse = "preToolUse",
        /// When approval is needed, before anyone is asked; the hook may decide.
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
        /// When the agent is about to end its turn; the hook may send it back to work.
        Stop = "stop",
        /// When a turn is interrupted.
        Interrupt = "interrupt",
    }
}

open_enum! {
    /// Whether the thread waits for a hook.
    pub enum HookExecutionMode {
        /// The thread waits, and the hook can change what happens.
        Sync = "sync",
        /// The thread goes on at once.
        Async = "async",
    }
}

open_enum! {
    /// What handles a hook.
    pub enum HookHandlerType {
        /// A shell command.
        Command = "command",
        /// A tool of an MCP server.
        McpTool = "mcpTool",
        /// A prompt put to a model.
        Prompt = "prompt",
        /// An agent.
        Agent = "agent",
    }
}

open_enum! {
    /// What a hook run belongs to.
    pub enum HookScope {
        /// The thread as a whole.
        Thread = "thread",
        /// One turn.
        Turn = "turn",
    }
}

open_enum! {
    /// Where a hook run stands.
    pub enum HookRunStatus {
        /// It has not ended.
        Running = "running",
        /// It ended and lets things go on.
        Completed = "completed",
        /// It broke, ran out of time or gave an answer that makes no sense.
        Failed = "failed",
        /// It refused what was about to happen.
        Blocked = "blocked",
        /// It asked for the work to end here.
        Stopped = "stopped",
    }
}

open_enum! {
    /// The layer of the configuration that defines a hook.
    pub enum HookSource or Unknown {
        /// The machine's configuration.
        System = "system",
        /// The user's configuration.
        User = "user",
        /// The project's configuration.
        Project = "project",
        /// Device management.
        Mdm = "mdm",
        /// Settings given at launch or when the thread started.
        SessionFlags = "sessionFlags",
        /// An installed plugin.
        Plugin = "plugin",
        /// Requirements an organisation sets from the cloud.
        CloudRequirements = "cloudRequirements",
        /// Configuration an organisation sets from the cloud.
        CloudManagedConfig = "cloudManagedConfig",
        /// An administrator's file of the older kind.
        LegacyManagedConfigFile = "legacyManagedConfigFile",
        /// Device management of the older kind.
        LegacyManagedConfigMdm = "legacyManagedConfigMdm",
        /// Not recorded.
        Unknown = "unknown",
    }
}

open_enum! {
    /// Whether a hook may run as far as the user's approval goes.
    pub enum HookTrustStatus {
        /// Set by an administrator; needs no approval.
        Managed = "managed",
        /// Never approved; it does not run.
        Untrusted = "untrusted",
        /// Approved as it now stands.
        Trusted = "trusted",
        /// Changed since it was approved; it does not run until approved again.
        Modified = "modified",
    }
}

open_enum! {
    /// What a line of hook output is for.
    pub enum HookOutputEntryKind {
        /// For the user: something to know.
        Warning = "warning",
        /// The reason the hook ended the work.
        Stop = "stop",
        /// For the model: why it was blocked, or what to do next.
        Feedback = "feedback",
        /// For the model: more to go on.
        Context = "context",
        /// What went wrong with the hook itself.
        Error = "error",
    }
}
