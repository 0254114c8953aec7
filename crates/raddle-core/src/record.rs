//! What the journal stores.
//!
//! This vocabulary is ours and is kept for ever: variants and members are added, never renamed or
//! removed, and every new member has a default. So that each can grow members, a variant that may one
//! day say more than its name is written as an object even while it is empty. What the wire says is made
//! from it by [`tell`](crate::tell).

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
pub use settings::*;
pub use turn::*;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Epoch, ItemId, Seq, ThreadId, Timestamp, TurnId};

/// How much of this vocabulary there is. It rises when a record comes to mean something that a version
/// which only skips what it does not know would get wrong; the owner's barrier names it, and a version that knows less
/// leaves the thread alone.
pub const LEVEL: u32 = 1;

/// One entry of a thread's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    pub body: RecordBody,
}

/// A fact, or a piece of an open item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RecordBody {
    /// A fact. It stays.
    Event(Box<Event>),
    /// A piece of an open item. It stays until its item is saved or completed.
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

/// What a record must survive before anyone hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The death of the process.
    Process,
    /// The loss of power.
    Power,
}

/// More text of an open item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The item that grows.
    pub item: ItemId,
    /// Which of its texts.
    pub part: ItemPart,
    /// How many bytes of that text came before.
    pub offset: u64,
    /// What is appended.
    pub text: String,
}

impl Delta {
    /// How much text one record, and so one notification, brings.
    pub const BYTES_MAX: usize = 32 << 10;
}

/// A fact of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    /// The thread came to be.
    ThreadStarted(ThreadStarted),
    /// A node took the thread: the barrier before everything else it writes.
    Owned(Owned),
    /// The owner may use numbers up to here.
    Reserved(Reserved),
    /// The owner left in good order.
    Released {},
    /// The thread goes on from another one's history.
    Forked(Forked),
    /// Turns from a point on no longer count.
    Reverted(Reverted),
    /// How turns run changed.
    SettingsChanged(SettingsChanged),
    /// The thread got a name, or lost it.
    Renamed(Renamed),
    /// What is noted about it changed.
    MetadataChanged(MetadataChanged),
    /// The thread got a goal, or its goal changed.
    GoalSet(GoalSet),
    /// It has no goal any more.
    GoalCleared {
        /// Who asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// Input waits to become a turn.
    InputQueued(InputQueued),
    /// Input waits no longer.
    InputUnqueued(InputUnqueued),
    /// What waits was put in another order.
    QueueReordered(QueueReordered),
    /// Hidden from ordinary lists.
    Archived {
        /// Who asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// Shown in ordinary lists again.
    Unarchived {
        /// Who asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// The thread is to be forgotten.
    Deleted {
        /// Who asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
    /// The model is told about its surroundings.
    Briefed(Briefed),
    /// The model is given history that did not happen here.
    ItemsInjected(ItemsInjected),
    /// A turn began.
    TurnStarted(TurnStarted),
    /// Input was taken into a turn, at its start or later.
    InputAccepted(InputAccepted),
    /// The model is about to be called.
    ModelCalled(ModelCalled),
    /// A call of the model ended.
    ModelEnded(ModelEnded),
    /// An item began.
    ItemStarted(ItemStarted),
    /// An open item's text so far; its earlier deltas may go.
    ItemSaved(ItemSaved),
    /// A tool is about to touch the world.
    ToolStarted(ToolStarted),
    /// An item ended; this is its last form.
    ItemCompleted(ItemCompleted),
    /// A client is asked.
    RequestOpened(RequestOpened),
    /// A request is settled.
    RequestResolved(RequestResolved),
    /// The agent's plan changed.
    PlanUpdated(PlanUpdated),
    /// The files a turn has changed, as one diff.
    DiffUpdated(DiffUpdated),
    /// Something the user should know.
    Warned(Warned),
    /// The turn is to stop as soon as what it started has ended.
    InterruptAccepted(InterruptAccepted),
    /// A turn ended.
    TurnEnded(TurnEnded),
    /// Earlier history was replaced by a summary.
    Compacted(Compacted),
    /// A request with a key was carried out; asked again, it is answered from here.
    Remembered(Remembered),
}

/// The first record of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStarted {
    /// Its id.
    pub thread: ThreadId,
    /// Whose it is, among tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Who started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What kind of client started it.
    pub source: ThreadSource,
    /// The client program's name for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// The client's own label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Version of the server that wrote this.
    pub version: String,
    /// Whether it lives in memory only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ephemeral: bool,
    /// Whether clients fetch its history page by page.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paginated: bool,
    /// State of the repository at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// How turns run.
    pub settings: Settings,
}

/// What kind of client started a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadSource {
    /// A terminal client.
    Cli,
    /// An editor, or any client that says nothing else.
    Editor,
    /// A run without a person.
    Exec,
    /// A program that embeds the server.
    AppServer,
    /// Something else, by its own name.
    Other(String),
}

/// State of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Git {
    /// Name of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Address of `origin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
}

/// A node took the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    /// Its reign.
    pub epoch: Epoch,
    /// The node.
    pub node: String,
    /// The head it found. Numbers between this and its own were told, if at all, and lost.
    pub found: Seq,
    /// The numbers it may use.
    pub reserved: Seq,
    /// How much of the vocabulary it may write: see [`LEVEL`].
    #[serde(default = "first_level", skip_serializing_if = "is_first_level")]
    pub level: u32,
    /// Version of the server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

fn first_level() -> u32 {
    1
}

// Serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_first_level(level: &u32) -> bool {
    *level == first_level()
}

/// More numbers for the owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    /// The last of them.
    pub to: Seq,
}

/// The thread goes on from another's history, which was copied in front of this record; one that was imported, from
/// its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// The new thread's own id.
    pub thread: ThreadId,
    /// The thread it was copied from.
    pub from: ThreadId,
    /// The last record that was copied.
    pub at: Seq,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What of the copied history counts.
    pub lineage: Vec<Span>,
    /// How many turns that is.
    pub turns: u64,
    /// How turns run from now on.
    pub settings: Settings,
    /// Whether it lives in memory only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ephemeral: bool,
}

impl Forked {
    /// Whether the thread goes on from its own history under its own id, as one that was imported does.
    pub fn is_import(&self) -> bool {
        self.thread == self.from
    }
}

/// Turns from a point on no longer count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reverted {
    /// The first turn that no longer counts.
    pub turn: TurnId,
    /// The number of its first record.
    pub at: Seq,
    /// What of the history counts from now on.
    pub lineage: Vec<Span>,
    /// How many turns that is.
    pub turns: u64,
    /// About how many tokens the model reads of it.
    #[serde(default)]
    pub context_tokens: u64,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// A stretch of a journal that counts for the model's context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its first number.
    pub from: Seq,
    /// The first number after it; nothing while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Seq>,
}

impl Span {
    /// Whether a number lies in it.
    pub fn holds(&self, seq: Seq) -> bool {
        self.from <= seq && self.until.is_none_or(|until| seq < until)
    }
}

/// The model is told about its surroundings: once, and again when they are no longer so. What it was told
/// before stays where it stands, so that what it reads begins with the same words from call to call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Briefed {
    /// About what.
    pub topic: Topic,
    /// What it reads; nothing if there is nothing to say any more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The files this was read from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// What the model is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Topic {
    /// What the files of the workspace ask of it.
    Instructions,
    /// Where and when it works, and what it may touch.
    Environment,
}

/// How turns run changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingsChanged {
    /// All settings, as they are from now on.
    pub settings: Settings,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// A thread's name changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renamed {
    /// The name; nothing when it has none any more.
    pub name: Option<String>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// Something the user should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warned {
    /// In a sentence.
    pub message: String,
    /// The budget that is nearly spent, if that is what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Spending>,
    /// Whether it is about tokens that are estimated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
}

impl Warned {
    /// Only these words.
    pub fn of(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            budget: None,
            estimated: false,
        }
    }
}

/// A request with a key was carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    /// The key.
    pub key: IdempotencyKey,
    /// A hash of what was asked.
    pub asked: String,
    /// What came of it.
    pub outcome: Value,
    /// What was answered, as it was written, where that is more than what came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// What makes a request the same request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdempotencyKey {
    /// Who asks.
    pub principal: String,
    /// For what.
    pub method: String,
    /// The client's own id for it.
    pub id: String,
}

impl Event {
    /// The item whose deltas are no longer needed once this is stored.
    pub fn settles(&self) -> Option<&ItemId> {
        match self {
            Self::ItemSaved(it) => Some(&it.item),
            Self::ItemCompleted(it) => Some(&it.item.id),
            _ => None,
        }
    }

    /// Whether this ends a turn because the journal is full. A journal holds room back for it.
    pub fn ends_for_lack_of_space(&self) -> bool {
        let Self::TurnEnded(it) = self else {
            return false;
        };
        matches!(&it.end, TurnEnd::Failed(failure) if failure.kind == FailureKind::StorageFull)
    }

    /// What it must survive before anyone hears of it.
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
    /// What it must survive before anyone hears of it.
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
