//! Commands to a thread, from clients and from the work that it started.

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
    Ask, Briefed, Cause, CommandRun, Forked, GoalStatus, HookPrompt, InjectedItem, Input, Item,
    ItemBody, ItemId, ItemPart, ItemStatus, ModelEnd, Output, PlanStep, Price, Recovery,
    RequestAnswer, RequestNumber, ReviewedHunk, Span, ThreadStarted, Timestamp, TurnId, TurnKind,
    Usage,
};
use crate::{Epoch, Failure, Seq};

/// A command to a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Creates the thread with its settings.
    StartThread(Box<ThreadStarted>),
    /// Takes ownership in a new epoch.
    Own(Own),
    /// Gives up ownership cleanly.
    Release,
    /// Drops the turns from a given one on.
    Revert(Revert),
    /// Changes the settings of later turns.
    ChangeSettings(Box<ChangeSettings>),
    /// Sets or clears the name.
    Rename(Rename),
    /// Changes the git metadata.
    ChangeMetadata(ChangeMetadata),
    /// Adds history from elsewhere to the model's context.
    InjectItems(InjectItems),
    /// Sets a goal, or changes the current one.
    SetGoal(SetGoal),
    /// Clears the goal of the thread.
    ClearGoal(ClearGoal),
    /// Appends input to the queue.
    Enqueue(Enqueue),
    /// Replaces input in the queue.
    ChangeQueued(ChangeQueued),
    /// Removes input from the queue.
    Unqueue(Unqueue),
    /// Changes the order of the queue.
    ReorderQueue(ReorderQueue),
    /// Starts a turn with input from the queue.
    StartQueued(StartQueued),
    /// Starts the turn that needs no client: from the queue, or for the goal.
    BeginTurn(BeginTurn),
    /// Hides the thread from lists, or shows it again.
    Archive(Archive),
    /// Deletes the thread and ends its running turn.
    Delete(Delete),
    /// Hands it input. While a turn runs, the input joins that turn.
    StartTurn(Box<StartTurn>),
    /// Starts a review in a separate turn.
    StartReview(Box<StartReview>),
    /// Runs a user command, in the running turn or in a separate one.
    RunShell(Box<RunShell>),
    /// Adds input to the running turn.
    Steer(Steer),
    /// Stops the running turn.
    Interrupt(Interrupt),
    /// Answers an open request.
    AnswerRequest(Box<AnswerRequest>),
    /// The model wrote an item, or a part of one.
    UpdateItem(UpdateItem),
    /// A tool printed text.
    AppendText(AppendText),
    /// The model called a tool.
    CallTool(Box<CallTool>),
    /// A model call ended.
    EndModel(Box<EndModel>),
    /// The model summarised the history.
    Compact(Compact),
    /// A running tool asks the user something.
    AskForTool(Box<AskForTool>),
    /// A running tool no longer needs the answer to this request.
    WithdrawRequest(RequestNumber),
    /// Asks the user whether a folder is trusted, while the turn continues.
    AskTrust(AskTrust),
    /// A running tool used a model.
    CountModelUse(Box<CountModelUse>),
    /// A tool run ended.
    EndTool(Box<EndTool>),
    /// The agent's plan changed.
    UpdatePlan(UpdatePlan),
    /// The turn's files changed.
    UpdateDiff(String),
    /// Shows the user a warning.
    Warn(String),
}

/// Result of a command. It is stored with the command's idempotency key, so it is part of the
/// vocabulary of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandOutcome {
    /// The command succeeded and returns nothing.
    Done {},
    /// The input started a new turn.
    Started {
        /// Id of the new turn.
        turn: TurnId,
    },
    /// The input joined the running turn.
    Joined {
        /// Id of the running turn.
        turn: TurnId,
    },
    /// The response is stored with the idempotency key. Never stored as an outcome itself.
    Kept {
        /// The response as it was sent.
        answer: String,
    },
}

/// Takes ownership of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// New epoch, above every earlier one.
    pub epoch: Epoch,
    /// Name of the node that takes ownership.
    pub node: String,
    /// Head of the journal when the thread was opened.
    pub head: Seq,
    /// Last record number that the owner may use at first.
    pub reserved: Seq,
    /// Recovery of a turn whose owner died, where the settings leave it open.
    pub recovery: Recovery,
    /// Set if this thread is a fork that diverges here.
    pub fork: Option<Box<Forked>>,
    /// Failure that ends an open turn at once; without it the turn is recovered.
    pub fails: Option<Box<Failure>>,
}

/// Sets or clears a thread's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rename {
    /// New name; `None` clears it.
    pub name: Option<String>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Changes a thread's git metadata. `None` leaves a value as it is; `Some(None)` clears it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeMetadata {
    /// Name of the git branch.
    pub branch: Option<Option<String>>,
    /// URL of the remote `origin`.
    pub origin: Option<Option<String>>,
    /// Hash of the commit.
    pub sha: Option<Option<String>>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Adds history from elsewhere to the model's context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InjectItems {
    /// Items to add, oldest first.
    pub items: Vec<InjectedItem>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Hides a thread from lists, or shows it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive {
    /// Whether to hide it.
    pub archived: bool,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Deletes a thread and ends its running turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Drops the turns from a given one on.
#[derive(Clone, Debug, PartialEq)]
pub struct Revert {
    /// First turn to drop.
    pub turn: TurnId,
    /// Number of that turn's first record.
    pub at: Seq,
    /// State of the thread just before that record.
    pub point: RevertPoint,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// The part of a thread's state that a revert to this point needs.
#[derive(Clone, Debug, PartialEq)]
pub struct RevertPoint {
    /// Parts of the history that counted.
    pub lineage: Vec<Span>,
    /// Number of turns that counted.
    pub turns: u64,
    /// Estimated tokens in the model's context.
    pub context_tokens: u64,
}

/// Hands input to a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct StartTurn {
    /// Id of the new turn, if one begins.
    pub turn: TurnId,
    /// Purpose of the turn.
    pub kind: TurnKind,
    /// The user's message; `None` for a turn that needs none.
    pub message: Option<InputMessage>,
    /// Settings that change for this and later turns.
    pub change: Box<SettingsChange>,
    /// Notes on the environment. Only those that the model does not have yet are added.
    pub briefs: Vec<Briefed>,
    /// Principal that sent the command.
    pub principal: Option<String>,
    /// Turn that this one descends from.
    pub root: Option<TurnId>,
    /// JSON Schema that the last message must match.
    pub output_schema: Option<Value>,
}

/// Starts a review in a separate turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartReview {
    /// Id of the new turn.
    pub turn: TurnId,
    /// Id of the turn's first item.
    pub item: ItemId,
    /// Description of the review for the user.
    pub text: String,
    /// Instructions for the model.
    pub prompt: String,
    /// Hunks of the diff under review, as far as they are known.
    pub hunks: Vec<ReviewedHunk>,
    /// Notes on the environment, as with [`StartTurn`].
    pub briefs: Vec<Briefed>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Runs a user command.
#[derive(Clone, Debug, PartialEq)]
pub struct RunShell {
    /// Id of the new turn, if one begins.
    pub turn: TurnId,
    /// Id of the item that shows the command.
    pub item: ItemId,
    /// The command to run.
    pub command: CommandRun,
    /// Notes on the environment, as with [`StartTurn`]: input may join the turn.
    pub briefs: Vec<Briefed>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// A message of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct InputMessage {
    /// Id of the message's item.
    pub item: ItemId,
    /// Content of the message, in parts.
    pub input: Vec<Input>,
    /// The client's own id for the message.
    pub client_id: Option<String>,
    /// Text that hooks add to the message, for the model.
    pub hook_prompt: Option<NewHookPrompt>,
}

/// Text of hooks that becomes an item.
#[derive(Clone, Debug, PartialEq)]
pub struct NewHookPrompt {
    /// Id of the item.
    pub item: ItemId,
    /// Text of the hooks.
    pub prompt: HookPrompt,
}

/// Adds input to the running turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Steer {
    /// Turn that the client believes is running.
    pub expected: TurnId,
    /// The user's message to add.
    pub message: InputMessage,
    /// Notes on the environment, as with [`StartTurn`]. Only the skills that the message names are
    /// added.
    pub briefs: Vec<Briefed>,
    /// Principal that sent the command.
    pub principal: Option<String>,
}

/// Stops the running turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupt {
    /// Turn to stop; `None` stops any running turn.
    pub turn: Option<TurnId>,
    /// Reason for the stop.
    pub cause: Cause,
}

/// Answers an open request.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerRequest {
    /// Number of the request.
    pub request: RequestNumber,
    /// Principal that gave the answer.
    pub by: String,
    /// Answer, which must match the request.
    pub answer: RequestAnswer,
}

/// The model wrote an item, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateItem {
    /// Number of the model call that produced it.
    pub call: u32,
    /// The part that was written.
    pub update: ItemUpdate,
}

/// A part of an item that the model writes.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemUpdate {
    /// The item begins, with its content but without its texts, which follow.
    Started(ItemId, Box<ItemBody>),
    /// Text is added to the item.
    Text(AppendText),
    /// The item ends with this content, and with an opaque form that only the vendor can read. An
    /// item without text of its own may begin and end at once.
    Completed(ItemId, Box<ItemBody>, Option<crate::Sealed>),
}

/// Text was added to an item.
#[derive(Clone, Debug, PartialEq)]
pub struct AppendText {
    /// Id of the item.
    pub item: ItemId,
    /// Text of the item that grew.
    pub part: ItemPart,
    /// Text to append to it.
    pub text: String,
}

/// The model called a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTool {
    /// Number of the model call that produced it.
    pub call: u32,
    /// Id of the item that shows the call.
    pub item: ItemId,
    /// Content of that item.
    pub body: ItemBody,
    /// The call as the model made it.
    pub tool_call: crate::ToolCall,
    /// Decision on the call.
    pub admission: Admission,
    /// The policy's ruling, if the policy was consulted.
    pub ruling: Option<Ruling>,
    /// Whether the policy approves the call if a request for approval times out.
    pub approve_on_timeout: bool,
}

/// Decision on a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Admission {
    /// The tool may start.
    Run,
    /// The user must approve the call, or supply its answer.
    Ask {
        /// Request to the user.
        ask: Ask,
        /// Deadline at which the request settles itself.
        expires_at: Option<Timestamp>,
    },
    /// A client runs the tool. Sending the request starts it, so it is sent once the model call has
    /// ended well.
    Client,
    /// Rejected; the text is returned to the model.
    Deny(String),
    /// The call only updates the plan.
    Plan(UpdatePlan),
    /// The call only reports the status of the goal.
    Goal(GoalStatus),
}

/// A model call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndModel {
    /// Number of the model call.
    pub call: u32,
    /// How the call ended.
    pub end: ModelEnd,
    /// Tokens that the call used.
    pub usage: Option<Usage>,
    /// Whether the usage is an estimate, because the vendor reported none.
    pub estimated: bool,
    /// Price of its tokens, if known.
    pub price: Option<Price>,
}

/// A running tool used a model.
#[derive(Clone, Debug, PartialEq)]
pub struct CountModelUse {
    /// Item of the tool call.
    pub item: ItemId,
    /// Model, as the settings name it.
    pub model: Option<String>,
    /// Provider, as the settings name it.
    pub provider: Option<String>,
    /// Tokens that it used.
    pub usage: Usage,
    /// Whether the usage is an estimate, because the vendor reported none.
    pub estimated: bool,
    /// Price of its tokens, if known.
    pub price: Option<Price>,
}

/// The model summarised the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Compact {
    /// Number of the model call that produced it.
    pub call: u32,
    /// Id of the item that shows it.
    pub item: ItemId,
    /// Summary that replaces the history.
    pub summary: String,
}

/// A running tool asks the user something.
#[derive(Clone, Debug, PartialEq)]
pub struct AskForTool {
    /// Id of the tool's item.
    pub item: ItemId,
    /// Request to the user.
    pub ask: Ask,
    /// Deadline at which the request settles itself.
    pub expires_at: Option<Timestamp>,
}

/// Asks the user whether a folder is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskTrust {
    /// Id for the request on the wire. No item has it.
    pub item: ItemId,
    /// Absolute path of the folder.
    pub folder: String,
    /// Deadline at which the request settles itself.
    pub expires_at: Option<Timestamp>,
}

/// A tool run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndTool {
    /// Id of the tool's item.
    pub item: ItemId,
    /// Final status of the item.
    pub status: ItemStatus,
    /// Final content of the item.
    pub body: ItemBody,
    /// Output for the model.
    pub output: Output,
}

/// The agent's plan changed.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatePlan {
    /// Reason for the change.
    pub explanation: Option<String>,
    /// Every step, in order.
    pub steps: Vec<PlanStep>,
}

impl InputMessage {
    /// Converts the message into a completed item.
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
