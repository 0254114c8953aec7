//! The agent's own tools, as it sees them.

use super::{ToolSpec, Waiting};
use crate::policy::Act;
use crate::{
    Ask, Call, Command, CommandRun, Item, ItemBody, ItemId, ItemStatus, Output, PlanStep, Settings,
    ThreadId, TurnId,
};

/// Tools of ours. None of them decides whether it may do what it is asked to.
pub trait Tools: Send + Sync {
    /// What the model may call in a thread with these settings. The same settings give the same bytes.
    fn specs(&self, settings: &Settings) -> Vec<ToolSpec>;

    /// What a call would do; nothing if no tool of ours has its name. It looks, and changes nothing.
    fn meant<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a Call,
    ) -> Waiting<'a, Option<(ItemBody, Meant)>>;

    /// A command that the user wants to run, as it is shown. It is run as a job without a call.
    fn users(&self, settings: &Settings, line: &str) -> CommandRun;

    /// Carries out a call that may be. Once its `stopped` is over it comes to its end soon. What it started
    /// and left running belongs to the turn.
    fn run(&self, job: Job) -> Waiting<'static, Ran>;

    /// Ends everything that calls of this turn left running, and names it.
    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> Waiting<'static, Vec<String>>;

    /// The commands that calls of a thread left running, oldest first.
    fn terminals(&self, thread: ThreadId) -> Vec<Terminal>;

    /// Ends one of them, or all if none is named. Whether there was one.
    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool;
}

/// A command that a call left running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
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
pub enum Meant {
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
pub struct Job {
    /// For which thread.
    pub thread: ThreadId,
    /// In which turn.
    pub turn: TurnId,
    /// The item that shows it, with the call in it.
    pub item: Item,
    /// How turns run.
    pub settings: Settings,
    /// The digest of the act that may be, where there is one. If the act would be another by now, nothing
    /// of it happens.
    pub digest: Option<String>,
    /// Takes what is said on the way.
    pub reports: Box<dyn Reports>,
    /// Over once the tool is to stop.
    pub stopped: Waiting<'static, ()>,
}

/// Takes what a tool says on its way.
pub trait Reports: Send + Sync {
    /// Takes a report. Whoever reports waits for room; false once nobody listens any more.
    fn report(&self, command: Command) -> Waiting<'_, bool>;
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
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

impl Ran {
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
