//! Threads: the thread object, its status and lineage, and its lifecycle notifications.

mod edit;
mod list;
mod open;

pub use edit::*;
pub use list::*;
pub use open::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// `thread/started`: a thread was started or forked. Sent to every initialised connection; only the
/// caller is subscribed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartedNotification {
    /// The thread with its initial status, without turns.
    pub thread: Thread,
}

/// `thread/status/changed`: the status of a thread changed. Sent to every initialised connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStatusChangedNotification {
    /// The thread whose status changed.
    pub thread_id: ThreadId,
    /// The new status.
    pub status: ThreadStatus,
}

/// `thread/archived`: a thread was archived. Sent to every initialised connection, once for each
/// archived descendant too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadArchivedNotification {
    /// The archived thread.
    pub thread_id: ThreadId,
}

/// `thread/unarchived`: an archived thread was restored. Sent to every initialised connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnarchivedNotification {
    /// The restored thread.
    pub thread_id: ThreadId,
}

/// `thread/deleted`: a thread was deleted. Sent to every initialised connection, once for each
/// deleted descendant too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDeletedNotification {
    /// Id of the deleted thread.
    pub thread_id: ThreadId,
}

/// `thread/closed`: a thread without subscribers or activity was unloaded from memory; its history
/// stays. Sent to every initialised connection, after the status `notLoaded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadClosedNotification {
    /// The unloaded thread.
    pub thread_id: ThreadId,
}

/// `thread/name/updated`: the name of a thread changed. Sent to every initialised connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadNameUpdatedNotification {
    /// The renamed thread.
    pub thread_id: ThreadId,
    /// The new name; null when the name was removed.
    pub thread_name: Option<String>,
}

/// `thread/tokenUsage/updated`: new token counts. Sent to subscribers after each model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTokenUsageUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that made the call.
    pub turn_id: TurnId,
    /// Tokens used so far.
    pub token_usage: ThreadTokenUsage,
    /// Model of the last call; absent when the call used the provider's default model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Provider of the last call; absent when it is the configured default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Cost of all model calls of the thread in US dollars, as far as prices are known; absent when
    /// no price is known. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// All budgets and the amounts spent of them; absent when no budget is set. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<BudgetSpending>>,
}

/// `thread/reverted`: `thread/revert` dropped the newest turns of the thread. The client must
/// discard its copy of the history and read it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRevertedNotification {
    /// The reverted thread.
    pub thread_id: ThreadId,
}

open_enum! {
    /// How clients fetch the history of a thread. Absence means `legacy`.
    pub enum ThreadHistoryMode or Legacy {
        /// All turns at once, with `thread/resume` or with `thread/read` and `includeTurns`.
        Legacy = "legacy",
        /// Page by page, with `thread/turns/list` and `thread/items/list`.
        Paginated = "paginated",
    }
}

/// A durable conversation with one workspace. Most members may be null; times are in seconds since
/// the epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Id of the thread: a UUID, of version 7 when this server generated it.
    pub id: ThreadId,
    /// Root of the tree of agents this thread belongs to; its own id for an ordinary thread.
    pub session_id: ThreadId,
    /// Version of the server that created the thread.
    pub cli_version: String,
    /// Creation time, in seconds since the epoch.
    pub created_at: i64,
    /// Absolute path of the folder in which commands run.
    pub cwd: String,
    /// Whether the thread is kept in memory only; `path` is null then.
    pub ephemeral: bool,
    /// Id of the model provider.
    pub model_provider: String,
    /// First text input of the user; empty before the first turn.
    pub preview: String,
    /// Id of the project the thread is filed under, if any.
    pub project_id: Option<String>,
    /// Kind of client or agent that started the thread.
    pub source: SessionSource,
    /// Current status of the thread.
    pub status: ThreadStatus,
    /// Its turns, oldest first. Filled by `thread/resume` and `thread/fork` unless excluded, and by
    /// `thread/read` with `includeTurns`; empty everywhere else.
    pub turns: Vec<Turn>,
    /// Time of the last change, in seconds since the epoch.
    pub updated_at: i64,
    /// Nickname of a spawned agent; null for other threads.
    pub agent_nickname: Option<String>,
    /// Role of a spawned agent; null for other threads.
    pub agent_role: Option<String>,
    /// Whether a client may start turns in this thread; null when unknown, as for a thread not
    /// loaded.
    #[schemars(extend("x-experimental" = true))]
    pub can_accept_direct_input: Option<bool>,
    /// Product flag stored with the thread; null when unset.
    #[schemars(extend("x-experimental" = true))]
    pub daybreak_enabled: Option<bool>,
    /// Environments in which the tools run, the primary one first. An empty list means none; null
    /// means not loaded or not reported.
    #[schemars(extend("x-experimental" = true))]
    pub environments: Option<Vec<ThreadEnvironment>>,
    /// Additional data about the thread, in a form the server chooses; null when there is none.
    #[schemars(extend("x-experimental" = true))]
    pub extra: Option<Value>,
    /// The thread this one was forked from; null if it is not a fork.
    pub forked_from_id: Option<ThreadId>,
    /// State of the git repository when the thread was created; null outside a repository.
    pub git_info: Option<GitInfo>,
    /// How clients fetch the history. Fixed when the thread is created; absence means `legacy`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub history_mode: ThreadHistoryMode,
    /// Model set for the next turn, or the last stored one; null when unknown.
    pub model: Option<String>,
    /// Title set by the user or a client; null when the thread has none.
    pub name: Option<String>,
    /// Name of the client program that created the thread; null when unknown.
    pub originator: Option<String>,
    /// The thread whose agent spawned this one; null for other threads.
    pub parent_thread_id: Option<ThreadId>,
    /// File that holds the history; it may not exist yet. Clients must not rely on it.
    pub path: Option<String>,
    /// Reasoning effort set for the next turn, or the last stored one; null when unset or unknown.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// Start time of the newest turn, in seconds since the epoch. No other event changes it.
    pub recency_at: Option<i64>,
    /// Section the thread is sorted into, if any.
    pub section: Option<ThreadSection>,
    /// Time at which the thread entered its section, in seconds since the epoch.
    pub section_entered_at: Option<i64>,
    /// Label that the client set in `thread/start` or `thread/fork`.
    pub thread_source: Option<String>,
}

open_enum! {
    /// Filter of `thread/list` and `thread/search` by origin of the thread.
    pub enum ThreadSourceKind {
        /// A terminal client.
        Cli = "cli",
        /// An editor, and by default any client of this protocol.
        Vscode = "vscode",
        /// A non-interactive run.
        Exec = "exec",
        /// A client of this protocol that is recorded as such.
        AppServer = "appServer",
        /// Another agent, for any purpose.
        SubAgent = "subAgent",
        /// Another agent, for a review.
        SubAgentReview = "subAgentReview",
        /// Another agent, to compact a context.
        SubAgentCompact = "subAgentCompact",
        /// Another agent that delegated part of its work.
        SubAgentThreadSpawn = "subAgentThreadSpawn",
        /// Another agent, for any other purpose.
        SubAgentOther = "subAgentOther",
        /// The origin is not recorded.
        Unknown = "unknown",
    }
}

tagged! {
    /// Status of a thread.
    pub enum ThreadStatus by "type" {
        /// The thread is stored, but not loaded into memory.
        NotLoaded = "notLoaded",
        /// The thread is loaded and no turn is running.
        Idle = "idle",
        /// The thread is loaded and its last turn failed. Lasts until the next turn starts.
        SystemError = "systemError",
        /// A turn is running.
        Active(ActiveThreadStatus) = "active",
    }
}

/// Status of a thread with a running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveThreadStatus {
    /// Reasons why the running turn is waiting; empty while it works.
    pub active_flags: Vec<ThreadActiveFlag>,
}

/// Token usage of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTokenUsage {
    /// Tokens of the newest model call.
    pub last: TokenUsageBreakdown,
    /// Tokens of all model calls of the thread.
    pub total: TokenUsageBreakdown,
    /// Size of the model's context window in tokens; null when unknown.
    pub model_context_window: Option<i64>,
}

externally_tagged! {
    /// Origin of a thread.
    pub enum SessionSource {
        /// A terminal client.
        Cli = "cli",
        /// An editor, and by default any client of this protocol.
        Vscode = "vscode",
        /// A non-interactive run.
        Exec = "exec",
        /// A client of this protocol that is recorded as such.
        AppServer = "appServer",
        /// The origin is not recorded.
        Unknown = "unknown",
        /// Another origin, by its own name.
        Custom(String) = "custom",
        /// Another agent started the thread.
        SubAgent(SubAgentSource) = "subAgent",
    }
}

externally_tagged! {
    /// Reason why an agent started a thread. Names are in snake_case on the wire.
    pub enum SubAgentSource {
        /// To run a review.
        Review = "review",
        /// To compact a context.
        Compact = "compact",
        /// To consolidate stored memories.
        MemoryConsolidation = "memory_consolidation",
        /// To delegate part of its work.
        ThreadSpawn(ThreadSpawnSubAgentSource) = "thread_spawn",
        /// Another reason, by its own name.
        Other(String) = "other",
    }
}

/// Lineage of a thread that an agent spawned. Names are in snake_case on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSpawnSubAgentSource {
    /// Number of ancestor agents.
    pub depth: i32,
    /// The thread whose agent spawned this one.
    pub parent_thread_id: ThreadId,
    /// Nickname of the agent; null if it has none.
    pub agent_nickname: Option<String>,
    /// Path of the agent in the tree of agents; null when not recorded.
    pub agent_path: Option<String>,
    /// Role of the agent; null if it has none.
    pub agent_role: Option<String>,
}

/// An environment selected for the tools of a loaded thread. It may currently be unreachable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadEnvironment {
    /// Working directory, in the path syntax of that environment.
    pub cwd: String,
    /// Id of the environment.
    pub environment_id: String,
    /// Root directories of the workspace in that environment.
    pub runtime_workspace_roots: Vec<String>,
}

/// Git state of a thread's repository; each member is null when unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitInfo {
    /// Name of the checked-out branch.
    pub branch: Option<String>,
    /// URL of the remote `origin`.
    pub origin_url: Option<String>,
    /// Hash of the checked-out commit.
    pub sha: Option<String>,
}

open_enum! {
    /// Reason why a running turn is waiting.
    pub enum ThreadActiveFlag {
        /// The turn waits for an approval.
        WaitingOnApproval = "waitingOnApproval",
        /// The turn waits for the answer to a question of the agent.
        WaitingOnUserInput = "waitingOnUserInput",
    }
}
