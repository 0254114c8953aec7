//! Hooks: commands of the operator, and methods of plugins, that run on events of a thread.

use std::future::ready;

use serde_json::{Map, Value};

use super::BoxFuture;
use crate::{HookPiece, Settings, ThreadId, TurnId};

/// Runs hooks. A hook can make a ruling stricter, and never more permissive.
pub trait Hooks: Send + Sync {
    /// Runs the hooks of an event, and returns their joint decision. `observer` receives the start
    /// and the end of each run.
    fn run<'a>(
        &'a self,
        call: HookCall,
        observer: &'a dyn HookObserver,
    ) -> BoxFuture<'a, HookOutcome>;

    /// Whether there is no hook at all, as far as that is known without waiting.
    fn is_empty(&self) -> bool {
        false
    }
}

/// Receives the start and the end of hook runs, and warnings about hooks that do not run.
pub trait HookObserver: Send + Sync {
    /// Accepts the state of a run.
    fn observe(&self, run: HookRun) -> BoxFuture<'_, ()>;

    /// Accepts a warning for the user.
    fn warn(&self, message: String) -> BoxFuture<'_, ()>;
}

/// Event on which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookEvent {
    /// Before a tool runs.
    PreToolUse,
    /// When an approval is requested.
    PermissionRequest,
    /// After a tool has run.
    PostToolUse,
    /// Before the history is summarised.
    PreCompact,
    /// After the history was summarised.
    PostCompact,
    /// Before the first input of a thread that was started or loaded.
    SessionStart,
    /// When the user sends input.
    UserPromptSubmit,
    /// When the agent is about to end its turn.
    Stop,
}

impl HookEvent {
    /// All events, in the order in which their hooks are listed.
    pub const ALL: [Self; 8] = [
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PreCompact,
        Self::PostCompact,
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::Stop,
    ];

    /// Returns the name in the configuration and in the input of a hook.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
        }
    }

    /// Returns the name in the key of a hook.
    pub fn key(self) -> &'static str {
        match self {
            Self::PreToolUse => "pre_tool_use",
            Self::PermissionRequest => "permission_request",
            Self::PostToolUse => "post_tool_use",
            Self::PreCompact => "pre_compact",
            Self::PostCompact => "post_compact",
            Self::SessionStart => "session_start",
            Self::UserPromptSubmit => "user_prompt_submit",
            Self::Stop => "stop",
        }
    }

    /// Returns the name on the wire.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::PreToolUse => "preToolUse",
            Self::PermissionRequest => "permissionRequest",
            Self::PostToolUse => "postToolUse",
            Self::PreCompact => "preCompact",
            Self::PostCompact => "postCompact",
            Self::SessionStart => "sessionStart",
            Self::UserPromptSubmit => "userPromptSubmit",
            Self::Stop => "stop",
        }
    }

    /// Whether a matcher selects among the events: by tool, or by the cause.
    pub fn has_matcher(self) -> bool {
        !matches!(self, Self::UserPromptSubmit | Self::Stop)
    }
}

/// An event of a thread, for its hooks.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Thread of the event.
    pub thread: ThreadId,
    /// Turn of the event; `None` outside a turn.
    pub turn: Option<TurnId>,
    /// Kind of the event.
    pub event: HookEvent,
    /// Names that a matcher is compared with: those of the tool, or the cause.
    pub subjects: Vec<String>,
    /// Settings of the thread: its folder and its sandbox.
    pub settings: Settings,
    /// Input of the hooks, beside the members that every event has.
    pub input: Map<String, Value>,
}

/// Joint decision of the hooks of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutcome {
    /// The strictest ruling of all hooks.
    pub ruling: HookRuling,
    /// Run that made this ruling; `None` if all pass.
    pub ruled_by: Option<String>,
    /// Arguments that replace those of the tool call.
    pub updated_input: Option<Value>,
    /// Text that the hooks add for the model.
    pub context: Vec<HookPiece>,
}

/// Ruling of a hook. The order is that of strictness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookRuling {
    /// No objection.
    #[default]
    Pass,
    /// The user must approve, for this reason.
    Ask(String),
    /// Rejected, for this reason.
    Deny(String),
}

impl HookRuling {
    /// Returns the stricter of two rulings; of two equal ones, the first.
    pub fn stricter(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Deny(_), _) | (_, Self::Pass) => self,
            (Self::Ask(_), Self::Ask(_)) => self,
            _ => other,
        }
    }
}

/// One run of a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookRun {
    /// Id of the run.
    pub id: String,
    /// Event that triggered it.
    pub event: HookEvent,
    /// Position of the hook among all hooks.
    pub display_order: i64,
    /// Author of the hook.
    pub layer: HookLayer,
    /// File that defines the hook.
    pub source_path: String,
    /// Status line to show while it runs.
    pub status_message: Option<String>,
    /// Start, in seconds since the epoch.
    pub started_at: i64,
    /// The end; `None` while it runs.
    pub end: Option<HookRunEnd>,
}

/// End of a hook run.
#[derive(Clone, Debug, PartialEq)]
pub struct HookRunEnd {
    /// Time in seconds since the epoch.
    pub completed_at: i64,
    /// Duration in milliseconds.
    pub duration_ms: i64,
    /// Result of the run.
    pub status: HookRunStatus,
    /// Output of the run.
    pub entries: Vec<HookEntry>,
}

/// Result of a hook run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookRunStatus {
    /// It ended without an objection.
    Completed,
    /// It failed, timed out or printed something invalid.
    Failed,
    /// It rejected the action, or requires an approval.
    Blocked,
}

/// Output of a hook run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEntry {
    /// Warning for the user.
    Warning(String),
    /// Reason of a ruling, or the next step for the model.
    Feedback(String),
    /// Context for the model.
    Context(String),
    /// Error of the hook itself.
    Error(String),
}

/// Author of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookLayer {
    /// The administrator of the machine.
    System,
    /// The user.
    User,
    /// An installed plugin.
    Plugin,
}

/// No hooks: every event passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn run<'a>(&'a self, _: HookCall, _: &'a dyn HookObserver) -> BoxFuture<'a, HookOutcome> {
        Box::pin(ready(HookOutcome::default()))
    }

    fn is_empty(&self) -> bool {
        true
    }
}
