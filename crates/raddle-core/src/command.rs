//! What can be asked of a thread, by clients and by the work it started.

mod change_settings;
mod goal;
mod queue;

pub use change_settings::{ChangeSettings, SettingsChange};
pub use goal::{BeginTurn, ClearGoal, SetGoal};
pub use queue::{ChangeQueued, Enqueue, ReorderQueue, StartQueued, Unqueue};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::Ruling;
use crate::{
    Ask, Briefed, Cause, CommandRun, Forked, GoalStatus, InjectedItem, Input, Item, ItemBody,
    ItemId, ItemPart, ItemStatus, ModelEnd, Output, PlanStep, Price, Recovery, RequestAnswer,
    RequestNumber, RevertPoint, ThreadStarted, Timestamp, TurnId, TurnKind, Usage,
};
use crate::{Epoch, Failure, Seq};

/// An order to a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Bring the thread into being.
    StartThread(Box<ThreadStarted>),
    /// Take it, in a new epoch.
    Own(Own),
    /// Leave it in good order.
    Release,
    /// Forget turns from one on.
    Revert(Revert),
    /// Change how turns run.
    ChangeSettings(Box<ChangeSettings>),
    /// Give it a name, or take it away.
    Rename(Rename),
    /// Change what is noted about it.
    ChangeMetadata(ChangeMetadata),
    /// Give the model history that did not happen here.
    InjectItems(InjectItems),
    /// Give it a goal, or change the one it has.
    SetGoal(SetGoal),
    /// Take its goal away.
    ClearGoal(ClearGoal),
    /// Put input into its queue.
    Enqueue(Enqueue),
    /// Change input that is in its queue.
    ChangeQueued(ChangeQueued),
    /// Take input out of its queue.
    Unqueue(Unqueue),
    /// Put its queue in another order.
    ReorderQueue(ReorderQueue),
    /// Begin a turn with input that is in its queue.
    StartQueued(StartQueued),
    /// Begin the turn that is to begin by itself.
    BeginTurn(BeginTurn),
    /// Hide it from lists, or show it again.
    Archive(Archive),
    /// Forget it.
    Delete(Delete),
    /// Hand it input. While a turn runs the input joins that turn.
    StartTurn(Box<StartTurn>),
    /// Review something, in a turn of its own.
    StartReview(Box<StartReview>),
    /// Run a command of the user's, in the turn that runs or in one of its own.
    RunShell(Box<RunShell>),
    /// Hand more input to the turn that runs.
    Steer(Steer),
    /// Stop the turn that runs.
    Interrupt(Interrupt),
    /// Answer a request.
    AnswerRequest(Box<AnswerRequest>),
    /// The model began an item.
    StartItem(Box<StartItem>),
    /// An item grew.
    AppendText(AppendText),
    /// The model ended an item.
    CompleteItem(Box<CompleteItem>),
    /// The model asks for a tool.
    CallTool(Box<CallTool>),
    /// A call of the model ended.
    EndModel(Box<EndModel>),
    /// The model condensed the history.
    Compact(Compact),
    /// A tool that runs has a question of its own.
    AskForTool(Box<AskForTool>),
    /// A tool ended.
    EndTool(Box<EndTool>),
    /// The agent's plan changed.
    UpdatePlan(UpdatePlan),
    /// The turn's files changed.
    UpdateDiff(String),
    /// Tell the user something.
    Warn(String),
}

/// What came of a command. It is kept with the key under which the command came, so it is part of the
/// vocabulary of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandOutcome {
    /// It was done.
    Done {},
    /// A new turn has the input.
    Started {
        /// Its id.
        turn: TurnId,
    },
    /// The turn that runs has the input.
    Joined {
        /// Its id.
        turn: TurnId,
    },
    /// What was answered is kept with the key. It is never an outcome that is stored.
    Kept {
        /// The answer, as it was written.
        answer: String,
    },
}

/// Take a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// The new reign; above every one before.
    pub epoch: Epoch,
    /// Who takes it.
    pub node: String,
    /// The head that was found.
    pub found: Seq,
    /// The last number it may use at first.
    pub reserved: Seq,
    /// What becomes of a turn whose owner died, where the settings do not say.
    pub recovery: Recovery,
    /// Set when this thread is a copy that goes its own way from here.
    pub fork: Option<Box<Forked>>,
    /// The failure with which an open turn ends at once; without it the turn is recovered.
    pub fails: Option<Box<Failure>>,
}

/// Give a thread a name, or take it away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rename {
    /// The name; nothing takes it away.
    pub name: Option<String>,
    /// Who asks.
    pub principal: Option<String>,
}

/// Change what is noted about a thread. What is absent stays; what is there may be nothing, which clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeMetadata {
    /// Name of the branch.
    pub branch: Option<Option<String>>,
    /// Address of `origin`.
    pub origin: Option<Option<String>>,
    /// The commit.
    pub sha: Option<Option<String>>,
    /// Who asks.
    pub principal: Option<String>,
}

/// Give the model history that did not happen here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InjectItems {
    /// Oldest first.
    pub items: Vec<InjectedItem>,
    /// Who asks.
    pub principal: Option<String>,
}

/// Hide a thread from lists, or show it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    /// Whether it is to be hidden.
    pub archived: bool,
    /// Who asks.
    pub principal: Option<String>,
}

/// Forget a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Who asks.
    pub principal: Option<String>,
}

/// Forget turns from one on.
#[derive(Clone, Debug, PartialEq)]
pub struct Revert {
    /// The first turn to forget.
    pub turn: TurnId,
    /// The number of its first record.
    pub at: Seq,
    /// The thread as it was just before that record.
    pub point: RevertPoint,
    /// Who asks.
    pub principal: Option<String>,
}

/// Hand a thread input.
#[derive(Clone, Debug, PartialEq)]
pub struct StartTurn {
    /// The new turn's id, if one begins.
    pub turn: TurnId,
    /// What the turn is for.
    pub kind: TurnKind,
    /// The message; nothing for a turn that needs none.
    pub message: Option<InputMessage>,
    /// What changes for this and later turns.
    pub change: Box<SettingsChange>,
    /// What there is to say about the surroundings. Only what the model does not know yet is told.
    pub briefs: Vec<Briefed>,
    /// Who asks.
    pub principal: Option<String>,
    /// The turn it goes back to.
    pub root: Option<TurnId>,
    /// A schema that the last message must fit.
    pub output_schema: Option<Value>,
}

/// Review something, in a turn of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartReview {
    /// The new turn's id.
    pub turn: TurnId,
    /// The id of the item with which it begins.
    pub item: ItemId,
    /// What is reviewed, for people.
    pub text: String,
    /// What the model is asked to do.
    pub prompt: String,
    /// What there is to say about the surroundings, as with [`StartTurn`].
    pub briefs: Vec<Briefed>,
    /// Who asks.
    pub principal: Option<String>,
}

/// Run a command of the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct RunShell {
    /// The new turn's id, if one begins.
    pub turn: TurnId,
    /// The id of the item that shows it.
    pub item: ItemId,
    /// What it is.
    pub command: CommandRun,
    /// What there is to say about the surroundings, as with [`StartTurn`]: input may join the turn.
    pub briefs: Vec<Briefed>,
    /// Who asks.
    pub principal: Option<String>,
}

/// A user's message.
#[derive(Clone, Debug, PartialEq)]
pub struct InputMessage {
    /// Its item's id.
    pub item: ItemId,
    /// Its parts.
    pub input: Vec<Input>,
    /// The client's own id for it.
    pub client_id: Option<String>,
}

/// Hand more input to the turn that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Steer {
    /// The turn the client believes is running.
    pub expected: TurnId,
    /// The message.
    pub message: InputMessage,
    /// Who sends it.
    pub principal: Option<String>,
}

/// Stop the turn that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    /// Which; nothing means whatever runs.
    pub turn: Option<TurnId>,
    /// Why.
    pub cause: Cause,
}

/// Answer a request.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerRequest {
    /// Which.
    pub request: RequestNumber,
    /// Who answers.
    pub by: String,
    /// What.
    pub answer: RequestAnswer,
}

/// The model began an item.
#[derive(Clone, Debug, PartialEq)]
pub struct StartItem {
    /// The call of the model it comes from.
    pub call: u32,
    /// Its id.
    pub item: ItemId,
    /// What it is; its texts come later.
    pub body: ItemBody,
}

/// An item grew.
#[derive(Clone, Debug, PartialEq)]
pub struct AppendText {
    /// Which.
    pub item: ItemId,
    /// Which of its texts.
    pub part: ItemPart,
    /// By what.
    pub text: String,
}

/// The model ended an item. Items without text of their own may begin and end at once.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteItem {
    /// The call of the model it comes from.
    pub call: u32,
    /// Its id.
    pub item: ItemId,
    /// Its last form.
    pub body: ItemBody,
    /// What only the vendor can read.
    pub sealed: Option<crate::Sealed>,
}

/// The model asks for a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTool {
    /// The call of the model it comes from.
    pub call: u32,
    /// The item that shows it.
    pub item: ItemId,
    /// What it is.
    pub body: ItemBody,
    /// The call as the model made it.
    pub asked: crate::ToolCall,
    /// What becomes of it.
    pub admission: Admission,
    /// What policy said of it, where it was asked.
    pub ruling: Option<Ruling>,
    /// Whether policy says yes if someone is asked and nobody answers in time.
    pub approve_on_timeout: bool,
}

/// What becomes of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// It may start.
    Run,
    /// Someone must say yes, or give the answer.
    Ask {
        /// The question.
        ask: Ask,
        /// When it settles itself.
        expires_at: Option<Timestamp>,
    },
    /// A client runs it. To ask it is to start it, so it is asked once the call of the model has ended well.
    Client,
    /// No, and this is what the model is told.
    Deny(String),
    /// There is no more to it than this plan.
    Plan(UpdatePlan),
    /// It says where the goal stands, and there is no more to it.
    Goal(GoalStatus),
}

/// A call of the model ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndModel {
    /// Which.
    pub call: u32,
    /// How.
    pub end: ModelEnd,
    /// What it used.
    pub usage: Option<Usage>,
    /// Whether the vendor did not say, and this is an estimate.
    pub estimated: bool,
    /// What its tokens cost, if that is known.
    pub price: Option<Price>,
}

/// The model condensed the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Compact {
    /// The call of the model it comes from.
    pub call: u32,
    /// The item that shows it.
    pub item: ItemId,
    /// What is read in place of the history.
    pub summary: String,
}

/// A tool that runs has a question of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct AskForTool {
    /// The tool's item.
    pub item: ItemId,
    /// The question.
    pub ask: Ask,
    /// When it settles itself.
    pub expires_at: Option<Timestamp>,
}

/// A tool ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndTool {
    /// Its item.
    pub item: ItemId,
    /// How.
    pub status: ItemStatus,
    /// Its item's last form.
    pub body: ItemBody,
    /// What the model is told.
    pub output: Output,
}

/// The agent's plan changed.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatePlan {
    /// Why.
    pub explanation: Option<String>,
    /// All steps.
    pub steps: Vec<PlanStep>,
}

impl InputMessage {
    /// The item it becomes.
    pub(crate) fn into_item(self, now: Timestamp) -> Item {
        Item {
            id: self.item,
            status: ItemStatus::Completed,
            body: ItemBody::UserMessage(crate::UserMessage {
                input: self.input,
                client_id: self.client_id,
            }),
            call: None,
            output: None,
            sealed: None,
            started_at: now,
            completed_at: Some(now),
        }
    }
}
