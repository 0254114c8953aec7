//! The agent's own tools, as it sees them.

use std::sync::Arc;

use super::{BoxFuture, ToolSpec};
use crate::policy::{Act, ActKind, ParsedScript};
use crate::{
    Ask, Command, CommandRun, Item, ItemBody, ItemId, ItemStatus, Output, PlanStep, Settings,
    ThreadId, ToolCall, TurnId,
};

/// Tools of ours. None of them decides whether it may do what it is asked to.
pub trait Tools: Send + Sync {
    /// What the model may call in a thread with these settings. The same settings give the same bytes.
    fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>>;

    /// What a call would do; nothing if no tool of ours has its name. It looks, and changes nothing.
    fn intent<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>>;

    /// A command that the user wants to run, as it is shown. It is run as a job without a call.
    fn user_command(&self, settings: &Settings, line: &str) -> CommandRun;

    /// A command that is run by its words, taken apart. Whoever knows no language of shells knows the words.
    fn script(&self, words: &[String]) -> ParsedScript {
        ParsedScript {
            line: words.join(" "),
            commands: vec![words.to_vec()],
            plain: false,
        }
    }

    /// The names by which rules about tools know a call: its own, and those of the tools that it comes to.
    fn names(&self, settings: &Settings, call: &ToolCall) -> Vec<String> {
        let _ = settings;
        vec![call.tool.clone()]
    }

    /// Carries out a call that may be. Once its `stopped` is over it comes to its end soon. What it started
    /// and left running belongs to the turn.
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult>;

    /// Ends everything that calls of this turn left running, and names it.
    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> BoxFuture<'static, Vec<String>>;

    /// The commands that calls of a thread left running, oldest first.
    fn terminals(&self, thread: ThreadId) -> Vec<BackgroundTerminal>;

    /// Ends one of them, or all if none is named. Whether there was one.
    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool;
}

/// A command that a call left running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackgroundTerminal {
    /// Its id, the same as in the item that started it.
    pub id: String,
    /// That item.
    pub item: ItemId,
    /// The command line.
    pub command: String,
    /// Where it runs.
    pub cwd: String,
    /// Its process.
    pub pid: Option<u32>,
}

/// What a call would do.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolIntent {
    /// This, if it may.
    Act(Act),
    /// Nothing that needs anyone's leave.
    Harmless,
    /// It asks the user something, and the answer is its output.
    Ask(Ask),
    /// It says what the plan is.
    Plan {
        /// Why it changes.
        explanation: Option<String>,
        /// All steps.
        steps: Vec<PlanStep>,
    },
    /// It cannot be carried out, and this is what the model is told.
    Refused(String),
}

/// A call to be carried out.
pub struct ToolJob {
    /// For which thread.
    pub thread: ThreadId,
    /// In which turn.
    pub turn: TurnId,
    /// The item that shows it, with the call in it.
    pub item: Item,
    /// How turns run.
    pub settings: Settings,
    /// What it may do, where that needs anyone's leave. If it would do something else by now, nothing of it
    /// happens.
    pub authorization: Option<Authorization>,
    /// Takes what is said on the way.
    pub reports: Box<dyn ReportSink>,
    /// Over once the tool is to stop.
    pub stopped: BoxFuture<'static, ()>,
}

impl ToolJob {
    /// Whether it may do this. The digest is only asked for where it counts.
    pub fn allows(&self, kind: &ActKind, digest: impl FnOnce() -> String) -> bool {
        match &self.authorization {
            Some(Authorization::Kind(allowed)) => allowed == kind,
            Some(Authorization::Exactly(allowed)) => *allowed == digest(),
            None => false,
        }
    }
}

/// What a call may do.
#[derive(Clone, Debug, PartialEq)]
pub enum Authorization {
    /// This, whatever else it is made of: policy was asked just now, and policy is about nothing else.
    Kind(ActKind),
    /// What has this digest and nothing else: someone said yes to it.
    Exactly(String),
}

/// Takes what a tool says on its way.
pub trait ReportSink: Send + Sync {
    /// Takes a report. Whoever reports waits for room; false once nobody listens any more.
    fn report(&self, command: Command) -> BoxFuture<'_, bool>;
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// How it ended.
    pub status: ItemStatus,
    /// Its item's last form.
    pub body: ItemBody,
    /// What the model is told.
    pub output: Output,
    /// What the turn changed so far as a unified diff, if this changed files.
    pub diff: Option<String>,
    /// Images that belong to what the model is told.
    pub pictures: Vec<Vec<u8>>,
    /// All that was said, if the model is told less.
    pub full: Option<String>,
}

impl ToolResult {
    /// This, and nothing beside it.
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
