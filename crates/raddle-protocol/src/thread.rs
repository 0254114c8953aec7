//! The thread itself, its status and lineage, and the notifications that tell of its life.

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

/// `thread/started`: a thread was started or forked.
/// Every initialised connection is told; only the caller is subscribed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStartedNotification {
    /// The thread with its first status, without turns.
    pub thread: Thread,
}

/// `thread/status/changed`, sent to every initialised connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStatusChangedNotification {
    /// The thread whose status changed.
    pub thread_id: ThreadId,
    /// The status from now on.
    pub status: ThreadStatus,
}

/// `thread/archived`, sent to every initialised connection, once for each descendant too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadArchivedNotification {
    /// The archived thread.
    pub thread_id: ThreadId,
}

/// `thread/unarchived`, sent to every initialised connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadUnarchivedNotification {
    /// The thread that was brought back.
    pub thread_id: ThreadId,
}

/// `thread/deleted`, sent to every initialised connection, once for each descendant too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDeletedNotification {
    /// The thread that is gone.
    pub thread_id: ThreadId,
}

/// `thread/closed`: a thread without subscribers or activity was unloaded; its history stays.
/// Every initialised connection is told, after the status `notLoaded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadClosedNotification {
    /// The unloaded thread.
    pub thread_id: ThreadId,
}

/// `thread/name/updated`, sent to every initialised connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadNameUpdatedNotification {
    /// The renamed thread.
    pub thread_id: ThreadId,
    /// The new name; null when it has none.
    pub thread_name: Option<String>,
}

/// `thread/tokenUsage/updated`, sent to subscribers after each call of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTokenUsageUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that made the call.
    pub turn_id: TurnId,
    /// Tokens used so far.
    pub token_usage: ThreadTokenUsage,
    /// The model that was called last; absent when the provider's own default was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its provider; absent when it is the configured default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// What all calls of the thread cost, in dollars, as far as prices are known; absent when nothing is. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Every budget there is, and what is spent of it; absent when there is none. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<BudgetSpending>>,
}

/// `thread/reverted`: the thread lost its newest turns to `thread/revert`.
/// What a client holds of its history is stale and must be read again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRevertedNotification {
    /// The thread that was cut back.
    pub thread_id: ThreadId,
}

open_enum! {
    /// How clients fetch a thread's history. Absence means `legacy`.
    pub enum ThreadHistoryMode or Legacy {
        /// All turns at once, with `thread/resume` or with `thread/read` and `includeTurns`.
        Legacy = "legacy",
        /// Page by page, with `thread/turns/list` and `thread/items/list`.
        Paginated = "paginated",
    }
}

keyed! {
    /// When the agent may hand work to other agents.
    pub enum MultiAgentMode or ExplicitRequestOnly {
        /// Only if the user asks for it. The default.
        ExplicitRequestOnly = "explicitRequestOnly",
        /// Whenever the agent thinks it useful.
        Proactive = "proactive",
        /// As the given text says.
        Custom(String) = "custom",
    }
}

/// A durable conversation with one workspace.
/// Most members may be null; times are in seconds since the epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Id of the thread: a UUID, version 7 when this server minted it.
    pub id: ThreadId,
    /// Root of the tree of agents this thread belongs to; its own id for an ordinary thread.
    pub session_id: ThreadId,
    /// Version of the server that made the thread.
    pub cli_version: String,
    /// When the thread was made, in seconds since the epoch.
    pub created_at: i64,
    /// Absolute working directory.
    pub cwd: String,
    /// Whether the thread lives in memory only; `path` is null then.
    pub ephemeral: bool,
    /// Id of the provider of its model.
    pub model_provider: String,
    /// The first text of the user; empty before the first turn.
    pub preview: String,
    /// Project the thread is filed under, if any.
    pub project_id: Option<String>,
    /// What kind of client or agent started the thread.
    pub source: SessionSource,
    /// What the thread is doing now.
    pub status: ThreadStatus,
    /// Its turns, oldest first. Filled by `thread/resume` and `thread/fork` unless excluded, and by
    /// `thread/read` with `includeTurns`; empty everywhere else.
    pub turns: Vec<Turn>,
    /// When the thread last changed, in seconds since the epoch.
    pub updated_at: i64,
    /// Name given to a spawned agent; null for other threads.
    pub agent_nickname: Option<String>,
    /// Role given to a spawned agent; null for other threads.
    pub agent_role: Option<String>,
    /// Whether a client may start turns here; null when unknown, as for a thread not loaded.
    #[schemars(extend("x-experimental" = true))]
    pub can_accept_direct_input: Option<bool>,
    /// A product switch stored with the thread; null when unset.
    #[schemars(extend("x-experimental" = true))]
    pub daybreak_enabled: Option<bool>,
    /// Places in which its tools run, the main one first. An empty list means none.
    /// Null means not loaded or not told.
    #[schemars(extend("x-experimental" = true))]
    pub environments: Option<Vec<ThreadEnvironment>>,
    /// More about the thread, in a form the server chooses; null when there is nothing.
    #[schemars(extend("x-experimental" = true))]
    pub extra: Option<Value>,
    /// The thread this one was forked from; null if it is no fork.
    pub forked_from_id: Option<ThreadId>,
    /// State of the repository when the thread was made; null outside of one.
    pub git_info: Option<GitInfo>,
    /// How to fetch the history. Fixed when the thread is made; absence means `legacy`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub history_mode: ThreadHistoryMode,
    /// Model set for the next turn, or the last one stored; null when unknown.
    pub model: Option<String>,
    /// Title given by the user or a client; null when it has none.
    pub name: Option<String>,
    /// Name of the client program that made the thread; null when unknown.
    pub originator: Option<String>,
    /// The thread whose agent spawned this one; null for other threads.
    pub parent_thread_id: Option<ThreadId>,
    /// File that holds the history, which may not exist yet. Not for clients to rely on.
    pub path: Option<String>,
    /// Reasoning effort set for the next turn, or the last one stored; null when unset or unknown.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// When a turn last started, in seconds since the epoch. Nothing else moves it.
    pub recency_at: Option<i64>,
    /// Section a client has put the thread in, if any.
    pub section: Option<ThreadSection>,
    /// When it was put there, in seconds since the epoch.
    pub section_entered_at: Option<i64>,
    /// The label that the client gave at `thread/start` or `thread/fork`.
    pub thread_source: Option<String>,
}

open_enum! {
    /// Filter of `thread/list` and `thread/search` by what started a thread.
    pub enum ThreadSourceKind {
        /// A terminal client.
        Cli = "cli",
        /// An editor, and by default any client of this protocol.
        Vscode = "vscode",
        /// A non-interactive run.
        Exec = "exec",
        /// A client of this protocol that is recorded as such.
        AppServer = "appServer",
        /// Another agent, for whatever purpose.
        SubAgent = "subAgent",
        /// Another agent, for a review.
        SubAgentReview = "subAgentReview",
        /// Another agent, to compact a context.
        SubAgentCompact = "subAgentCompact",
        /// Another agent that handed over part of its work.
        SubAgentThreadSpawn = "subAgentThreadSpawn",
        /// Another agent, for any other purpose.
        SubAgentOther = "subAgentOther",
        /// Not recorded.
        Unknown = "unknown",
    }
}

tagged! {
    /// What a thread is doing.
    pub enum ThreadStatus by "type" {
        /// Stored, but not in memory.
        NotLoaded = "notLoaded",
        /// In memory, with no turn running.
        Idle = "idle",
        /// In memory, and the last turn failed. Lasts until the next turn starts.
        SystemError = "systemError",
        /// A turn is running.
        Active(ActiveThreadStatus) = "active",
    }
}

/// A running turn, and what it waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActiveThreadStatus {
    /// What the turn waits for; empty while it works.
    pub active_flags: Vec<ThreadActiveFlag>,
}

/// Tokens used by a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadTokenUsage {
    /// The newest call of the model.
    pub last: TokenUsageBreakdown,
    /// All calls of the thread so far.
    pub total: TokenUsageBreakdown,
    /// Size of the model's context window in tokens; null when unknown.
    pub model_context_window: Option<i64>,
}

keyed! {
    /// What started a thread.
    pub enum SessionSource {
        /// A terminal client.
        Cli = "cli",
        /// An editor, and by default any client of this protocol.
        Vscode = "vscode",
        /// A non-interactive run.
        Exec = "exec",
        /// A client of this protocol that is recorded as such.
        AppServer = "appServer",
        /// Not recorded.
        Unknown = "unknown",
        /// Something else, by its own name.
        Custom(String) = "custom",
        /// Another agent.
        SubAgent(SubAgentSource) = "subAgent",
    }
}

keyed! {
    /// Why an agent started a thread. Names are in snake_case on the wire.
    pub enum SubAgentSource {
        /// For a review.
        Review = "review",
        /// To compact a context.
        Compact = "compact",
        /// To tidy up what is remembered.
        MemoryConsolidation = "memory_consolidation",
        /// To hand over part of its work.
        ThreadSpawn(ThreadSpawnSubAgentSource) = "thread_spawn",
        /// For something else, by its own name.
        Other(String) = "other",
    }
}

/// The lineage of a thread that an agent spawned. Names are in snake_case on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSpawnSubAgentSource {
    /// How many agents stand above it.
    pub depth: i32,
    /// The thread whose agent spawned it.
    pub parent_thread_id: ThreadId,
    /// The name it was given; null for none.
    pub agent_nickname: Option<String>,
    /// Its place in the tree of agents; null when not recorded.
    pub agent_path: Option<String>,
    /// The role it was given; null for none.
    pub agent_role: Option<String>,
}

/// A place selected for a loaded thread's tools. It need not be reachable now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadEnvironment {
    /// Working directory, as that place spells paths.
    pub cwd: String,
    /// Id of the environment.
    pub environment_id: String,
    /// Paths that make up the workspace there.
    pub runtime_workspace_roots: Vec<String>,
}

/// State of a thread's repository; each member is null when unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitInfo {
    /// Name of the branch.
    pub branch: Option<String>,
    /// URL of the remote `origin`.
    pub origin_url: Option<String>,
    /// Id of the commit checked out.
    pub sha: Option<String>,
}

open_enum! {
    /// What a running turn waits for.
    pub enum ThreadActiveFlag {
        /// An approval.
        WaitingOnApproval = "waitingOnApproval",
        /// An answer to a question the agent asked.
        WaitingOnUserInput = "waitingOnUserInput",
    }
}
