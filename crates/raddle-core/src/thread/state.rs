//! State of a thread. All of it is computed from the records, and none of it grows with their
//! number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::BudgetUsage;
use super::keys::RememberedOutcome;
use super::{Goal, ModelUsage, OpenItem, QueuedInput};
use crate::{
    Ask, Cause, Epoch, Failure, Git, GoalStatus, Grant, Item, ItemId, Purpose, RequestNumber,
    RevertPoint, ReviewedHunk, Route, Seq, Settings, Settlement, Span, ThreadId, ThreadSource,
    Timestamp, Topic, TurnEnd, TurnId, TurnKind, Usage,
};

/// Maximum number of resolved requests that are kept.
pub(super) const SETTLED_MAX: usize = 256;

/// Maximum number of acts that are approved for the session. Beyond it, the oldest need approval
/// again.
pub(super) fn granted_max() -> usize {
    crate::bugs::bound(1000, 2)
}

/// Maximum number of ranges of lost sequence numbers that are kept.
pub(super) fn gaps_max() -> usize {
    crate::bugs::bound(64, 3)
}

/// Maximum number of reverted ranges that are kept, and of ranges in the lineage.
pub(super) fn cuts_max() -> usize {
    crate::bugs::bound(256, 4)
}

/// A thread, rebuilt by folding its records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Number of the newest record folded in.
    pub(crate) head: Seq,
    pub(crate) identity: Option<Identity>,
    pub(crate) owner: Option<Owner>,
    pub(crate) settings: Settings,
    pub(crate) name: Option<String>,
    pub(crate) archived: bool,
    pub(crate) deleted: bool,
    pub(crate) updated_at: Timestamp,
    pub(crate) recency_at: Option<Timestamp>,
    /// Beginning of the user's first message.
    pub(crate) preview: String,
    /// Number of turns that count.
    pub(crate) turns: u64,
    pub(crate) turn: Option<OpenTurn>,
    pub(crate) last_turn: Option<LastTurn>,
    pub(crate) requests: BTreeMap<RequestNumber, OpenRequest>,
    pub(crate) next_request: RequestNumber,
    pub(crate) settled: VecDeque<SettledRequest>,
    pub(crate) keys: VecDeque<RememberedOutcome>,
    pub(crate) usage: Usage,
    pub(crate) last_usage: Usage,
    /// Estimated tokens in the model's context.
    pub(crate) context_tokens: u64,
    /// Parts of the history that count for the model's context.
    pub(crate) lineage: Vec<Span>,
    /// Reverted ranges, oldest first and disjoint.
    pub(crate) cuts: VecDeque<Span>,
    /// Reverted ranges before this are dropped.
    pub(crate) cuts_from: Seq,
    pub(crate) gaps: VecDeque<Gap>,
    /// Cursors below this can no longer be validated.
    pub(crate) judged_from: Seq,
    /// Record at which the status last changed.
    pub(crate) status_at: Seq,
    /// Number of model calls so far, so that a late report of one call is not mistaken for that of
    /// another.
    pub(crate) calls: u32,
    /// Model of the newest call.
    #[serde(default)]
    pub(crate) asked: CalledModel,
    /// Newest notes on the environment, per topic.
    pub(crate) briefs: BTreeMap<Topic, Brief>,
    pub(crate) goal: Option<Goal>,
    /// Record that last changed or cleared the goal.
    pub(crate) goal_at: Seq,
    /// Queued input, the next first.
    pub(crate) queue: Vec<QueuedInput>,
    /// Whether the queue waits until another turn starts, because the last turn did not end well.
    pub(crate) queue_rests: bool,
    /// Record that began the newest turn.
    pub(crate) turn_at: Seq,
    /// Digests of acts that are approved for the session, oldest first.
    #[serde(default)]
    pub(crate) granted: VecDeque<String>,
    /// Rights beyond the sandbox that are granted for the session.
    #[serde(default)]
    pub(crate) rights: Grant,
    /// Usage of everything that may have a budget.
    #[serde(default)]
    pub(crate) spent: BudgetUsage,
    /// Usage of each model.
    #[serde(default)]
    pub(crate) accounts: Vec<ModelUsage>,
}

/// A note that the model has on a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Brief {
    /// Record that added it.
    pub(crate) at: Seq,
    /// Hash of its text, to recognise changes; `None` once the note no longer counts and the
    /// earlier one is unknown.
    pub(crate) digest: Option<u64>,
}

/// Facts of a thread that are fixed at its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    pub(crate) thread: ThreadId,
    pub(crate) tenant: Option<String>,
    pub(crate) principal: Option<String>,
    pub(crate) source: ThreadSource,
    pub(crate) originator: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) version: String,
    pub(crate) ephemeral: bool,
    pub(crate) paginated: bool,
    pub(crate) git: Option<Git>,
    pub(crate) forked_from: Option<ThreadId>,
    pub(crate) created_at: Timestamp,
}

/// Owner that may write now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) epoch: Epoch,
    pub(crate) node: String,
    pub(crate) reserved: Seq,
    /// Whether it gave up ownership cleanly.
    pub(crate) released: bool,
    /// Level of the vocabulary that it may have written.
    pub(crate) level: u32,
}

/// Numbers strictly between these may have been announced and were lost with the power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gap {
    pub(crate) after: Seq,
    pub(crate) before: Seq,
}

/// A request that was resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettledRequest {
    pub(crate) request: RequestNumber,
    pub(crate) how: Settlement,
    /// Whether clients are notified that it was resolved.
    #[serde(rename = "told")]
    pub(crate) is_announced: bool,
}

/// A request that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequest {
    /// Turn that sent it.
    pub turn: TurnId,
    /// Item that it is about.
    pub item: ItemId,
    /// Content of the request.
    pub ask: Ask,
    /// Time at which it was opened.
    pub opened_at: Timestamp,
    /// Deadline at which it settles itself.
    pub expires_at: Option<Timestamp>,
    /// Digest of the act to approve.
    #[serde(default)]
    pub digest: Option<String>,
    /// Files that an approval for the session also covers.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether the policy approves the request if it times out.
    #[serde(rename = "yesInTheEnd", default)]
    pub approve_on_timeout: bool,
}

/// The turn that is running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenTurn {
    /// Id of the turn.
    pub id: TurnId,
    /// Purpose of the turn.
    pub kind: TurnKind,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Turn that this one descends from.
    pub root: Option<TurnId>,
    /// JSON Schema that its last message must match.
    pub output_schema: Option<Value>,
    /// Open items, in the order they began.
    pub items: Vec<OpenItem>,
    /// Model call that is running.
    pub(crate) model: Option<ModelCall>,
    /// Number of model calls so far.
    pub calls: u32,
    /// Number of attempts in a row at the same call.
    pub(crate) attempts: u32,
    /// Number of retries so far, over all calls.
    #[serde(default)]
    pub(crate) retries: u32,
    /// Number of fallbacks used so far.
    #[serde(default)]
    pub(crate) fallen: usize,
    /// Number of times in a row that the history exceeded the context window.
    #[serde(default)]
    pub(crate) overflows: u32,
    /// Whether there is input that no model call has included.
    pub(crate) unread: bool,
    /// Time of the retry of a call that broke off.
    pub(crate) retry_at: Option<Timestamp>,
    /// Time at which it broke off.
    pub(crate) broke_at: Timestamp,
    /// Failure because of which the turn cannot continue.
    pub(crate) failed: Option<Failure>,
    pub(crate) stopping: Option<StopRequest>,
    /// Number of owners that died in it.
    pub(crate) owners_lost: u32,
    /// Whether the history was summarised, if that is the turn's purpose.
    pub(crate) compacted: bool,
    /// Newest complete message of the agent.
    pub(crate) answer: Option<Box<Item>>,
    /// Whether a review began in it and has not ended.
    #[serde(default)]
    pub(crate) reviewing: bool,
    /// Hunks of the diff under review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reviewed: Vec<ReviewedHunk>,
    /// Rights beyond the sandbox that are granted for it.
    #[serde(default)]
    pub(crate) rights: Grant,
    /// Usage of everything that may have a budget.
    #[serde(default)]
    pub(crate) spent: BudgetUsage,
    /// Time from which usage is charged; `None` if it is not.
    #[serde(default)]
    pub(crate) charged_from: Option<Timestamp>,
}

impl OpenTurn {
    /// Whether there is something for the model to read or to summarise.
    pub(crate) fn needs_call(&self) -> bool {
        self.unread || self.needs_compaction()
    }

    /// Whether its history exceeded the context window, and was not summarised since.
    pub(crate) fn is_too_long(&self) -> bool {
        self.overflows > 0 && !self.compacted
    }

    /// Whether its history is still to be summarised.
    pub(crate) fn needs_compaction(&self) -> bool {
        self.kind == TurnKind::Compaction && !self.compacted
    }
}

/// A model and its provider, as the settings named them at the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CalledModel {
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
}

/// The running model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelCall {
    pub(crate) call: u32,
    pub(crate) purpose: Purpose,
    /// Record that announced it.
    pub(crate) at: Seq,
}

/// An accepted interrupt of the running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StopRequest {
    pub(crate) cause: Cause,
    pub(crate) at: Timestamp,
}

/// The newest turn that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastTurn {
    /// Id of the turn.
    pub id: TurnId,
    /// Turn that this one descends from.
    pub root: Option<TurnId>,
    /// How the turn ended.
    pub end: TurnEnd,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// Time at which it ended.
    pub ended_at: Timestamp,
    /// Last message of the agent.
    pub answer: Option<Box<Item>>,
}

/// Status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No turn is running.
    Idle,
    /// No turn is running, and the newest one failed.
    Failed,
    /// A turn is running.
    Active {
        /// Whether it waits for approval.
        waits_for_approval: bool,
        /// Whether it waits for an answer of the user.
        waits_for_input: bool,
    },
}

/// A snapshot of a thread's whole state. It can be dropped and rebuilt from the records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Base {
    /// Version of the state's form.
    pub version: u32,
    /// State of the thread.
    pub thread: Thread,
}

/// Validity of the cursor of a client that reconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorStatus {
    /// The client gets the records after it.
    Good,
    /// The client may have received records that are not stored; it needs a snapshot.
    Expired,
}

impl Base {
    /// Version of the state's form that this server writes.
    pub const VERSION: u32 = 4;

    /// Creates a snapshot of a thread.
    pub fn of(thread: &Thread) -> Self {
        let mut thread = thread.clone();
        if crate::bugs::planted(crate::bugs::Bug::BaseDiffers) {
            thread.requests.clear();
        }
        Self {
            version: Self::VERSION,
            thread,
        }
    }
}

impl Thread {
    /// Creates a thread before its first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of the newest record folded in.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Id of the thread, once it was started.
    pub fn id(&self) -> Option<ThreadId> {
        self.identity.as_ref().map(|it| it.thread)
    }

    /// Epoch of the newest owner.
    pub fn epoch(&self) -> Epoch {
        self.owner.as_ref().map_or(Epoch(0), |owner| owner.epoch)
    }

    /// Node that owns the thread, or owned it last.
    pub fn node(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.node.as_str())
    }

    /// Node that owns the thread, unless it gave up ownership cleanly.
    pub fn owner(&self) -> Option<&str> {
        let owner = self.owner.as_ref()?;
        (!owner.released).then_some(owner.node.as_str())
    }

    /// Level of the vocabulary that the newest owner may have written. Above
    /// [`LEVEL`](crate::LEVEL), this version does not understand all of it.
    pub fn level(&self) -> u32 {
        self.owner
            .as_ref()
            .map_or(crate::LEVEL, |owner| owner.level)
    }

    /// Last number that the owner may use.
    pub fn reserved(&self) -> Seq {
        self.owner
            .as_ref()
            .map_or(Seq::ZERO, |owner| owner.reserved)
    }

    /// Settings of the turns.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Settings of the running turn, with the fallback model if there is one.
    pub fn effective_settings(&self) -> Settings {
        let mut settings = self.settings.clone();
        if let Some(route) = self.route() {
            settings.model = Some(route.model.clone());
            settings.provider = Some(route.provider.clone());
        }
        settings
    }

    /// Rights beyond the sandbox that are granted, for the session and for the turn.
    pub fn rights(&self) -> Grant {
        let mut rights = self.rights.clone();
        if let Some(turn) = &self.turn {
            rights.write.extend(turn.rights.write.iter().cloned());
            rights.network |= turn.rights.network;
        }
        rights
    }

    /// Fallback model of the running turn, if it has one.
    pub(crate) fn route(&self) -> Option<&Route> {
        let fallen = self.turn.as_ref()?.fallen;
        self.settings.fallback.get(fallen.checked_sub(1)?)
    }

    /// Number of times in a row that the running turn's history exceeded the context window.
    pub fn overflows(&self) -> u32 {
        self.turn.as_ref().map_or(0, |turn| turn.overflows)
    }

    /// Name of the thread.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether the thread exists in memory only.
    pub fn is_ephemeral(&self) -> bool {
        self.identity.as_ref().is_some_and(|it| it.ephemeral)
    }

    /// Whether ordinary lists hide it.
    pub fn is_archived(&self) -> bool {
        self.archived
    }

    /// Whether the thread was deleted.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// Number of turns that count.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The running turn, if any.
    pub fn turn(&self) -> Option<&OpenTurn> {
        self.turn.as_ref()
    }

    /// The newest turn that ended.
    pub fn last_turn(&self) -> Option<&LastTurn> {
        self.last_turn.as_ref()
    }

    /// Goal of the thread, if it has one.
    pub fn goal(&self) -> Option<&Goal> {
        self.goal.as_ref()
    }

    /// Whether the goal is active, so that the model may report its status.
    pub fn has_active_goal(&self) -> bool {
        self.goal
            .as_ref()
            .is_some_and(|goal| goal.status == GoalStatus::Active)
    }

    /// Returns the open requests, with their numbers.
    pub fn requests(&self) -> impl Iterator<Item = (RequestNumber, &OpenRequest)> {
        self.requests.iter().map(|(number, open)| (*number, open))
    }

    /// Digests of acts that are approved for the session.
    pub fn granted(&self) -> BTreeSet<String> {
        self.granted.iter().cloned().collect()
    }

    /// Tokens of all model calls.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Parts of the history that count for the model's context.
    pub fn lineage(&self) -> &[Span] {
        &self.lineage
    }

    /// Returns the state that a revert to this point needs.
    pub fn revert_point(&self) -> RevertPoint {
        RevertPoint {
            lineage: self.lineage.clone(),
            turns: self.turns,
            context_tokens: self.context_tokens,
        }
    }

    /// Computes the status, which is never stored.
    pub fn status(&self) -> Status {
        if self.turn.is_some() {
            let asks = || self.requests.values().map(|open| &open.ask);
            let mut items = self.turn.iter().flat_map(|turn| &turn.items);
            return Status::Active {
                waits_for_approval: asks().any(Ask::is_approval) || items.any(OpenItem::waits),
                waits_for_input: asks().any(Ask::is_input),
            };
        }
        match &self.last_turn {
            Some(LastTurn {
                end: TurnEnd::Failed(_),
                ..
            }) => Status::Failed,
            _ => Status::Idle,
        }
    }

    /// Whether a client that received everything up to this cursor can continue from it.
    pub fn cursor(&self, cursor: Seq) -> CursorStatus {
        let lost = |gap: &Gap| gap.after < cursor && cursor < gap.before;
        let identity = self.identity.as_ref();
        let is_fork = identity.is_some_and(|it| it.forked_from.is_some());
        if cursor == Seq::ZERO && !is_fork {
            return CursorStatus::Good;
        }
        let items = self.turn.iter().flat_map(|turn| &turn.items);
        // The deltas between the cursor and the saved text are deleted.
        let merged =
            |open: &OpenItem| open.began <= cursor && open.saved.is_some_and(|at| cursor < at);
        let unknown = cursor > self.head || cursor < self.judged_from;
        if unknown || self.gaps.iter().any(lost) || items.into_iter().any(merged) {
            CursorStatus::Expired
        } else {
            CursorStatus::Good
        }
    }

    /// Whether a client has a request to run an item.
    pub(crate) fn is_with_client(&self, item: &ItemId) -> bool {
        let mut requests = self.requests.values();
        requests.any(|open| open.item == *item && open.ask == Ask::ClientTool {})
    }

    pub(crate) fn open_item(&self, id: &ItemId) -> Option<&OpenItem> {
        let turn = self.turn.as_ref()?;
        turn.items.iter().find(|open| open.item.id == *id)
    }
}
