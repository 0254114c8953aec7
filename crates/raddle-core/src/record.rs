//! Vocabulary of the journal.
//!
//! This vocabulary is permanent: variants and members are added, never renamed or removed, and
//! every new member has a default. A variant that may need members later is written as an object
//! even while it is empty. [`notifications_of`](crate::notifications_of) derives the notifications
//! on the wire from it.

mod ask;
mod budget;
mod failure;
mod goal;
mod injected;
mod item;
mod metadata;
mod queue;
mod settings;
mod turn;

pub use ask::*;
pub use budget::*;
pub use failure::*;
pub use goal::*;
pub use injected::*;
pub use item::*;
pub use metadata::*;
pub use queue::*;
pub(crate) use settings::replace_paths;
pub use settings::*;
pub use turn::*;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Epoch, ItemId, Seq, ThreadId, Timestamp, TurnId};

/// Level of this vocabulary. It rises when a record gets a meaning that an older version, which
/// skips unknown members, would get wrong. The owner's barrier names it, and a version with a lower
/// level does not open the thread.
pub const LEVEL: u32 = 1;

/// One entry of a thread's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the record.
    pub seq: Seq,
    /// Time at which it was decided.
    pub at: Timestamp,
    /// Content of the record.
    pub body: RecordBody,
}

/// A fact, or a piece of an open item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RecordBody {
    /// A fact; it stays in the journal.
    Event(Box<Event>),
    /// A piece of an open item. It stays until the item is saved or completed.
    Delta(Delta),
}

impl From<Event> for RecordBody {
    fn from(event: Event) -> Self {
        Self::Event(Box::new(event))
    }
}

impl From<Delta> for RecordBody {
    fn from(delta: Delta) -> Self {
        Self::Delta(delta)
    }
}

/// Failure that a record must survive before it is announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A crash of the process.
    Process,
    /// A loss of power.
    Power,
}

/// More text of an open item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// Id of the item that grows.
    pub item: ItemId,
    /// Text of the item that grows.
    pub part: ItemPart,
    /// Length of that text before, in bytes.
    pub offset: u64,
    /// Text to append at the offset.
    pub text: String,
}

impl Delta {
    /// Maximum number of bytes of text in one record, and so in one notification.
    pub const BYTES_MAX: usize = 32 << 10;
}

/// A fact of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// The thread was created.
    ThreadStarted(ThreadStarted),
    /// A node took ownership: the barrier before everything else it writes.
    Owned(Owned),
    /// The owner may use numbers up to here.
    Reserved(Reserved),
    /// The owner gave the thread up cleanly.
    Released {},
    /// The thread continues from another one's history.
    Forked(Forked),
    /// Turns from a point on no longer count.
    Reverted(Reverted),
    /// The settings of turns changed.
    SettingsChanged(SettingsChanged),
    /// The name was set or cleared.
    Renamed(Renamed),
    /// The git metadata changed.
    MetadataChanged(MetadataChanged),
    /// A goal was set or changed.
    GoalSet(GoalSet),
    /// The goal was cleared.
    GoalCleared {
        /// Principal that sent the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// Input waits to become a turn.
    InputQueued(InputQueued),
    /// Input left the queue.
    InputUnqueued(InputUnqueued),
    /// The queue was reordered.
    QueueReordered(QueueReordered),
    /// Hidden from ordinary lists.
    Archived {
        /// Principal that sent the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// Shown in ordinary lists again.
    Unarchived {
        /// Principal that sent the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// The thread was deleted.
    Deleted {
        /// Principal that sent the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// The model got a note on its environment.
    Briefed(Briefed),
    /// The model got history from elsewhere.
    ItemsInjected(ItemsInjected),
    /// A turn began, with or without input.
    TurnStarted(TurnStarted),
    /// A turn accepted input, at its start or later.
    InputAccepted(InputAccepted),
    /// The model is about to be called.
    ModelCalled(ModelCalled),
    /// A model call ended.
    ModelEnded(ModelEnded),
    /// A running tool used a model.
    ModelUsed(ModelUsed),
    /// An item began and is open.
    ItemStarted(ItemStarted),
    /// An open item's text so far; its earlier deltas may go.
    ItemSaved(ItemSaved),
    /// A tool is about to have effects.
    ToolStarted(ToolStarted),
    /// An item ended, with its final content.
    ItemCompleted(ItemCompleted),
    /// A request to a client was opened.
    RequestOpened(RequestOpened),
    /// A request was resolved.
    RequestResolved(RequestResolved),
    /// The agent's plan changed.
    PlanUpdated(PlanUpdated),
    /// The files a turn has changed, as one diff.
    DiffUpdated(DiffUpdated),
    /// A warning for the user.
    Warned(Warned),
    /// The turn stops as soon as the work it started has ended.
    InterruptAccepted(InterruptAccepted),
    /// A turn ended, after all its items.
    TurnEnded(TurnEnded),
    /// Earlier history was replaced by a summary.
    Compacted(Compacted),
    /// A request with an idempotency key was executed; a repeat gets this result.
    Remembered(Remembered),
}

/// The first record of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStarted {
    /// Id of the thread.
    pub thread: ThreadId,
    /// Tenant that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Principal that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Kind of client that started it.
    pub source: ThreadSource,
    /// Name that the client program gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// The client's own label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Version of the server that wrote this.
    pub version: String,
    /// Whether it is kept in memory only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ephemeral: bool,
    /// Whether clients fetch its history page by page.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paginated: bool,
    /// State of the git repository at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// Settings of the turns.
    pub settings: Settings,
}

/// Kind of client that started a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadSource {
    /// A client in a terminal.
    Cli,
    /// An editor, or a client that does not name itself.
    Editor,
    /// A run without a user.
    Exec,
    /// A program that embeds the server.
    AppServer,
    /// Another client, by its own name.
    Other(String),
}

/// State of a git repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Git {
    /// Name of the git branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// URL of the remote `origin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Hash of the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
}

/// A node took ownership of the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    /// Epoch of the owner.
    pub epoch: Epoch,
    /// Name of the node.
    pub node: String,
    /// Head of the journal at that time. Records numbered between this and the owner's own may have
    /// been announced, and are lost.
    pub found: Seq,
    /// Last number that it may use.
    pub reserved: Seq,
    /// Level of the vocabulary that it may write: see [`LEVEL`].
    #[serde(default = "first_level", skip_serializing_if = "is_first_level")]
    pub level: u32,
    /// Version of the node's server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

fn first_level() -> u32 {
    1
}

// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_first_level(level: &u32) -> bool {
    *level == first_level()
}

/// More record numbers for the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    /// Last of these numbers.
    pub to: Seq,
}

/// The thread continues from another one's history, which was copied in front of this record. An
/// imported thread continues from its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// Id of the new thread.
    pub thread: ThreadId,
    /// Thread that it was copied from.
    pub from: ThreadId,
    /// Last record that was copied.
    pub at: Seq,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Parts of the copied history that count.
    pub lineage: Vec<Span>,
    /// Number of turns in these parts.
    pub turns: u64,
    /// Settings of later turns.
    pub settings: Settings,
    /// Whether it is kept in memory only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ephemeral: bool,
}

impl Forked {
    /// Whether the thread continues its own history under its own id, as an imported one does.
    pub fn is_import(&self) -> bool {
        self.thread == self.from
    }
}

/// Turns from a point on no longer count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reverted {
    /// First turn that no longer counts.
    pub turn: TurnId,
    /// Number of its first record.
    pub at: Seq,
    /// Parts of the history that count from now on.
    pub lineage: Vec<Span>,
    /// Number of turns in these parts.
    pub turns: u64,
    /// Estimated tokens of that history in the model's context.
    #[serde(default)]
    pub context_tokens: u64,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// A range of a journal that counts for the model's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First number of the range.
    pub from: Seq,
    /// First number after it; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Seq>,
}

impl Span {
    /// Whether the range contains a number.
    pub fn holds(&self, seq: Seq) -> bool {
        self.from <= seq && self.until.is_none_or(|until| seq < until)
    }
}

/// A note on the environment: sent once, and again when it has changed. Earlier notes stay in place,
/// so that the beginning of the context is the same from call to call. It is for the model, except
/// for [`Topic::WithheldSkills`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Briefed {
    /// Topic of the note.
    pub topic: Topic,
    /// Text of the note; empty if the topic no longer applies.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Files that the text comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Whether the user is asked about it instead of warned, for [`Topic::WithheldSkills`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_asked: bool,
}

/// Topics of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Topic {
    /// Instructions in the files of the workspace.
    Instructions,
    /// Folder, date and permissions of the work.
    Environment,
    /// Names and descriptions of the skills that the model may use.
    Skills,
    /// Content of the skills that the user's newest message names.
    SkillTexts,
    /// Skills of the workspace that the model does not get. The note is a warning for the user,
    /// unless the user is asked.
    WithheldSkills,
}

/// The settings of turns changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsChanged {
    /// All settings, valid from now on.
    pub settings: Settings,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// A thread's name changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renamed {
    /// New name; `None` if it was cleared.
    pub name: Option<String>,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// A warning for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warned {
    /// The warning, in one sentence.
    pub message: String,
    /// Budget that is nearly spent or exceeded, if the warning is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Spending>,
    /// Whether the warning is about estimated tokens.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
}

impl Warned {
    /// Creates a warning with only a message.
    pub fn of(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            budget: None,
            estimated: false,
        }
    }
}

/// A request with an idempotency key was executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    /// Idempotency key of the request.
    pub key: IdempotencyKey,
    /// Hash of the request.
    pub asked: String,
    /// Result of the request.
    pub outcome: Value,
    /// Response as it was sent, where it contains more than the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// Identity of a request for idempotency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdempotencyKey {
    /// Principal that sent the request.
    pub principal: String,
    /// Method of the request.
    pub method: String,
    /// The client's own id for the request.
    pub id: String,
}

impl Event {
    /// Item whose deltas are no longer needed once this is stored.
    pub fn settles(&self) -> Option<&ItemId> {
        match self {
            Self::ItemSaved(it) => Some(&it.item),
            Self::ItemCompleted(it) => Some(&it.item.id),
            _ => None,
        }
    }

    /// Whether this ends a turn because the journal is full. A journal reserves space for it.
    pub fn ends_for_lack_of_space(&self) -> bool {
        let Self::TurnEnded(it) = self else {
            return false;
        };
        matches!(&it.end, TurnEnd::Failed(failure) if failure.kind == FailureKind::StorageFull)
    }

    /// Failure that it must survive before it is announced.
    pub fn class(&self) -> Class {
        match self {
            Self::ThreadStarted(_)
            | Self::Owned(_)
            | Self::Reserved(_)
            | Self::Released {}
            | Self::Forked(_)
            | Self::Reverted(_)
            | Self::SettingsChanged(_)
            | Self::Renamed(_)
            | Self::MetadataChanged(_)
            | Self::ItemsInjected(_)
            | Self::GoalSet(_)
            | Self::GoalCleared { .. }
            | Self::InputQueued(_)
            | Self::InputUnqueued(_)
            | Self::QueueReordered(_)
            | Self::Archived { .. }
            | Self::Unarchived { .. }
            | Self::Deleted { .. }
            | Self::TurnStarted(_)
            | Self::InputAccepted(_)
            | Self::ToolStarted(_)
            | Self::RequestOpened(_)
            | Self::RequestResolved(_)
            | Self::InterruptAccepted(_)
            | Self::TurnEnded(_)
            | Self::Compacted(_)
            | Self::Remembered(_) => Class::Power,
            // A tool's end is as durable as its start; other items are text.
            Self::ItemCompleted(it) if it.item.call.is_some() || it.item.is_users_command() => {
                Class::Power
            }
            Self::ModelCalled(_)
            | Self::ModelEnded(_)
            | Self::ModelUsed(_)
            | Self::ItemStarted(_)
            | Self::ItemSaved(_)
            | Self::ItemCompleted(_)
            | Self::PlanUpdated(_)
            | Self::DiffUpdated(_)
            | Self::Briefed(_)
            | Self::Warned(_) => Class::Process,
        }
    }
}

impl RecordBody {
    /// Failure that it must survive before it is announced.
    pub fn class(&self) -> Class {
        match self {
            Self::Event(event) => event.class(),
            Self::Delta(_) => Class::Process,
        }
    }
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
