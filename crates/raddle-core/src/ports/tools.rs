//! The built-in tools, as the agent sees them.

use std::sync::Arc;

use super::{BoxFuture, PluginActs, PluginEvent, ToolSpec};
use crate::policy::{Act, ActKind, ParsedScript};
use crate::{
    Ask, Command, CommandRun, HunkDecision, Item, ItemBody, ItemId, ItemStatus, Output, PlanStep,
    Resolution, Settings, ThreadId, ToolCall, TurnId,
};

/// The built-in tools. None of them decides whether a call is allowed.
pub trait Tools: Send + Sync {
    /// Returns the tools that the model may call with these settings. The same settings give the
    /// same bytes.
    fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>>;

    /// Starts what the tools of a thread with these settings need, in the background.
    fn prepare(&self, settings: &Settings) {
        let _ = settings;
    }

    /// Waits for the tools without which a turn with these settings must not begin.
    fn requirement<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Requirement> {
        let _ = settings;
        Box::pin(std::future::ready(Requirement::None))
    }

    /// Returns what a call would do; `None` if no built-in tool has its name. It changes nothing.
    fn intent<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>>;

    /// Returns the item of a command that the user wants to run. It runs as a job without a call.
    fn user_command(&self, settings: &Settings, line: &str) -> CommandRun;

    /// Parses a command given as words. Without a shell parser only the words are known.
    fn script(&self, words: &[String]) -> ParsedScript {
        ParsedScript {
            line: words.join(" "),
            commands: vec![words.to_vec()],
            plain: false,
        }
    }

    /// Returns the names by which rules match a call: its own, and those of the tools that it
    /// calls.
    fn names(&self, settings: &Settings, call: &ToolCall) -> Vec<String> {
        let _ = settings;
        vec![call.tool.clone()]
    }

    /// Runs a call that was authorized. After `stopped` completes it ends soon. Processes that it
    /// leaves running belong to the turn.
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult>;

    /// Ends everything that calls of this turn left running, and returns the names.
    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> BoxFuture<'static, Vec<String>>;

    /// Returns the commands that calls of a thread left running, oldest first.
    fn terminals(&self, thread: ThreadId) -> Vec<BackgroundTerminal>;

    /// Ends one of these commands, or all for `None`. Returns whether there was one.
    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool;
}

/// State of the tools without which a turn must not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// There are none.
    None,
    /// They are available now, and were perhaps not before.
    Met,
    /// One is not available; the text is for the user.
    Missing(String),
}

/// A command that a call left running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundTerminal {
    /// Id, the same as in the item that started it.
    pub id: String,
    /// Item that started the command.
    pub item: ItemId,
    /// The command line, as text.
    pub command: String,
    /// Working folder of the command.
    pub cwd: String,
    /// Id of the process.
    pub pid: Option<u32>,
}

/// Intent of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolIntent {
    /// An act that the policy must judge.
    Act(Act),
    /// Nothing that needs authorization.
    Harmless,
    /// A question to the user, whose answer is the output.
    Ask(Ask),
    /// A new plan of the agent.
    Plan {
        /// Reason for the change.
        explanation: Option<String>,
        /// Every step, in order.
        steps: Vec<PlanStep>,
    },
    /// The call cannot run; the text is returned to the model.
    Refused(String),
}

/// A tool call to run.
pub struct ToolJob {
    /// Thread that the call belongs to.
    pub thread: ThreadId,
    /// Turn that the call belongs to.
    pub turn: TurnId,
    /// Whether the thread exists in memory only, so that nothing of it may be stored.
    pub is_ephemeral: bool,
    /// Item that shows the call, and contains it.
    pub item: Item,
    /// Settings of the turn.
    pub settings: Settings,
    /// Authorized act, where one is needed. If the call would do something else by now, it does
    /// nothing.
    pub authorization: Option<Authorization>,
    /// Decisions of the user on the hunks of a change of files. Only the accepted ones are applied;
    /// if there are no decisions, all are.
    pub hunks: Vec<HunkDecision>,
    /// Working directory on which the ids of these hunks depend: that of the thread when the user was
    /// asked. Clients may have changed the one in `settings` since.
    pub hunk_cwd: String,
    /// Receives reports while the tool runs.
    pub reports: Box<dyn ReportSink>,
    /// Asks the user while the tool runs.
    pub questions: Arc<dyn QuestionSink>,
    /// Acts of a plugin that answers the call.
    pub acts: Arc<dyn PluginActs>,
    /// Completes once the tool must stop.
    pub stopped: BoxFuture<'static, ()>,
}

impl ToolJob {
    /// Whether the authorization covers this act. The digest is computed only where it matters.
    pub fn allows(&self, kind: &ActKind, digest: impl FnOnce() -> String) -> bool {
        match &self.authorization {
            Some(Authorization::Kind(allowed)) => allowed == kind,
            Some(Authorization::Exactly(allowed)) => *allowed == digest(),
            None => false,
        }
    }
}

/// Authorization of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Authorization {
    /// Covers any act of this kind: the policy was consulted just now and judges nothing else.
    Kind(ActKind),
    /// Covers only the act with this digest, which the user approved.
    Exactly(String),
}

/// Receives reports of a running tool.
pub trait ReportSink: Send + Sync {
    /// Accepts a report. The tool waits for capacity; returns false once the receiver is gone.
    fn report(&self, command: Command) -> BoxFuture<'_, bool>;

    /// Sends a progress message to the subscribers. It is not stored, and does not wait: without
    /// capacity it is dropped.
    fn progress(&self, message: String);

    /// Sends an event of a plugin to the subscribers that want such events. It is not stored, and
    /// does not wait: without capacity it is dropped, and the result is false.
    fn plugin_event(&self, event: PluginEvent) -> bool;
}

/// Sends questions of a running tool to the user.
pub trait QuestionSink: Send + Sync {
    /// Asks the user, and returns how the request was resolved. The request is stored and sent to
    /// clients like an approval, and is withdrawn when the tool ends or the future is dropped.
    /// Where the settings forbid asking, it is declined without a request.
    fn ask(&self, ask: Ask) -> BoxFuture<'static, Resolution>;
}

/// Result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// Final status of the item.
    pub status: ItemStatus,
    /// Final content of the item.
    pub body: ItemBody,
    /// Output for the model.
    pub output: Output,
    /// Unified diff of the turn so far, if the call changed files.
    pub diff: Option<String>,
    /// Images that belong to the output.
    pub pictures: Vec<Vec<u8>>,
    /// Complete output, if the model gets less.
    pub full: Option<String>,
}

impl ToolResult {
    /// Creates a result with only these parts.
    pub fn new(status: ItemStatus, body: ItemBody, output: Output) -> Self {
        Self {
            status,
            body,
            output,
            diff: None,
            pictures: Vec::new(),
            full: None,
        }
    }
}
