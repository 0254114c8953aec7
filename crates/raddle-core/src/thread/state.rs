//! What is known of a thread. All of it is read off the records, and none of it grows with their number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::BudgetUsage;
use super::keys::RememberedOutcome;
use super::{Goal, ModelUsage, QueuedInput};
use crate::{
    Ask, Cause, Epoch, Failure, Gate, Git, Grant, Item, ItemBody, ItemId, ItemPart, ItemStatus,
    Purpose, RequestNumber, Route, Seq, Settings, Settlement, Span, ThreadId, ThreadSource,
    Timestamp, Topic, TurnEnd, TurnId, TurnKind, Usage,
};

/// How many settled requests are remembered.
pub(super) const SETTLED_MAX: usize = 256;

/// How many acts can have a yes until the session ends; who allows more is asked again about the oldest.
pub(super) fn granted_max() -> usize {
    crate::bugs::bound(1000, 2)
}

/// How many stretches of lost numbers are remembered.
pub(super) fn gaps_max() -> usize {
    crate::bugs::bound(64, 3)
}

/// How many stretches that were taken back are remembered, and how many may make up the lineage.
pub(super) fn cuts_max() -> usize {
    crate::bugs::bound(256, 4)
}

/// A thread, rebuilt by folding its records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// The newest record that was folded in.
    pub(crate) head: Seq,
    pub(crate) identity: Option<Identity>,
    pub(crate) owner: Option<Owner>,
    pub(crate) settings: Settings,
    pub(crate) name: Option<String>,
    pub(crate) archived: bool,
    pub(crate) deleted: bool,
    pub(crate) updated_at: Timestamp,
    pub(crate) recency_at: Option<Timestamp>,
    /// The first words of the user.
    pub(crate) preview: String,
    /// How many turns count.
    pub(crate) turns: u64,
    pub(crate) turn: Option<OpenTurn>,
    pub(crate) last_turn: Option<LastTurn>,
    pub(crate) requests: BTreeMap<RequestNumber, OpenRequest>,
    pub(crate) next_request: RequestNumber,
    pub(crate) settled: VecDeque<SettledRequest>,
    pub(crate) keys: VecDeque<RememberedOutcome>,
    pub(crate) usage: Usage,
    pub(crate) last_usage: Usage,
    /// About how many tokens the model's context holds.
    pub(crate) context_tokens: u64,
    /// What of the history counts for the model's context.
    pub(crate) lineage: Vec<Span>,
    /// What no longer counts although it came before, oldest first and apart from each other.
    pub(crate) cuts: VecDeque<Span>,
    /// Before this, cuts are forgotten.
    pub(crate) cuts_from: Seq,
    pub(crate) gaps: VecDeque<Gap>,
    /// Cursors below this can no longer be judged.
    pub(crate) judged_from: Seq,
    /// The record at which the status last changed.
    pub(crate) status_at: Seq,
    /// How often the model was called, so that a late word of one call is not taken for another's.
    pub(crate) calls: u32,
    /// Who was called last.
    #[serde(default)]
    pub(crate) asked: CalledModel,
    /// What the model was last told about its surroundings.
    pub(crate) briefs: BTreeMap<Topic, Brief>,
    pub(crate) goal: Option<Goal>,
    /// The record that last changed the goal, or took it away.
    pub(crate) goal_at: Seq,
    /// Input that waits, the next first.
    pub(crate) queue: Vec<QueuedInput>,
    /// Whether it waits until a turn ends well or someone starts it: the last turn did not end well.
    pub(crate) queue_rests: bool,
    /// The record that began the newest turn.
    pub(crate) turn_at: Seq,
    /// The digests of acts that have a yes until the session ends, oldest first.
    #[serde(default)]
    pub(crate) granted: VecDeque<String>,
    /// The rights beyond the fence that were given until the session ends.
    #[serde(default)]
    pub(crate) rights: Grant,
    /// What was used of what may have a budget.
    #[serde(default)]
    pub(crate) spent: BudgetUsage,
    /// What each model used.
    #[serde(default)]
    pub(crate) accounts: Vec<ModelUsage>,
}

/// What the model was told about something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Brief {
    /// Where.
    pub(crate) at: Seq,
    /// What, as a number that tells it from everything else that is likely to be said; nothing once that no
    /// longer counts, and what was said before it is not known.
    pub(crate) digest: Option<u64>,
}

/// What was settled when the thread began.
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

/// Who may write now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) epoch: Epoch,
    pub(crate) node: String,
    pub(crate) reserved: Seq,
    /// Whether it left in good order.
    pub(crate) released: bool,
    /// How much of the vocabulary it may have written.
    pub(crate) level: u32,
}

/// Numbers that may have been told and were lost with the power: those strictly between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gap {
    pub(crate) after: Seq,
    pub(crate) before: Seq,
}

/// A request that was settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettledRequest {
    pub(crate) request: RequestNumber,
    pub(crate) how: Settlement,
    /// Whether clients are told that it was settled.
    pub(crate) told: bool,
}

/// A request that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequest {
    /// The turn that asks.
    pub turn: TurnId,
    /// The item it is about.
    pub item: ItemId,
    /// What is asked.
    pub ask: Ask,
    /// Since when.
    pub opened_at: Timestamp,
    /// Until when.
    pub expires_at: Option<Timestamp>,
    /// The digest of the act it is about.
    #[serde(default)]
    pub digest: Option<String>,
    /// What a yes for the session is good for besides.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether policy says yes in the end.
    #[serde(rename = "yesInTheEnd", default)]
    pub approve_on_timeout: bool,
}

/// The turn that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenTurn {
    /// Its id.
    pub id: TurnId,
    /// What it is for.
    pub kind: TurnKind,
    /// When it began.
    pub started_at: Timestamp,
    /// The turn it goes back to.
    pub root: Option<TurnId>,
    /// A schema that its last message must fit.
    pub output_schema: Option<Value>,
    /// Its open items, in the order they began.
    pub items: Vec<OpenItem>,
    /// The call of the model that runs.
    pub(crate) model: Option<ModelCall>,
    /// How often the model was called.
    pub(crate) calls: u32,
    /// How often in a row for the same question.
    pub(crate) attempts: u32,
    /// How often calls of it were made again, whatever they asked.
    #[serde(default)]
    pub(crate) retries: u32,
    /// How many of the fallbacks it has come to.
    #[serde(default)]
    pub(crate) fallen: usize,
    /// How often in a row the history did not fit the model.
    #[serde(default)]
    pub(crate) overflows: u32,
    /// Whether there is something no call of the model has read.
    pub(crate) unread: bool,
    /// When a call that broke off is tried again.
    pub(crate) retry_at: Option<Timestamp>,
    /// When it broke off.
    pub(crate) broke_at: Timestamp,
    /// Why the turn cannot go on.
    pub(crate) failed: Option<Failure>,
    pub(crate) stopping: Option<StopRequest>,
    /// How many owners died in it.
    pub(crate) owners_lost: u32,
    /// Whether its history was condensed, if that is what it is for.
    pub(crate) compacted: bool,
    /// The newest whole message of the agent.
    pub(crate) answer: Option<Box<Item>>,
    /// Whether a review began in it and has not ended.
    #[serde(default)]
    pub(crate) reviewing: bool,
    /// The rights beyond the fence that were given for it.
    #[serde(default)]
    pub(crate) rights: Grant,
    /// What was used of what may have a budget.
    #[serde(default)]
    pub(crate) spent: BudgetUsage,
    /// From when on that counts; nothing if it does not.
    #[serde(default)]
    pub(crate) charged_from: Option<Timestamp>,
}

impl OpenTurn {
    /// Whether there is something for the model to read or to condense.
    pub(crate) fn is_to_ask(&self) -> bool {
        self.unread || self.is_to_condense()
    }

    /// Whether its history did not fit the model, and was not condensed since.
    pub(crate) fn is_too_long(&self) -> bool {
        self.overflows > 0 && !self.compacted
    }

    /// Whether its history is to be condensed, and was not.
    pub(crate) fn is_to_condense(&self) -> bool {
        self.kind == TurnKind::Compaction && !self.compacted
    }
}

/// Who was called, as the settings named them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CalledModel {
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
}

/// A call of the model that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelCall {
    pub(crate) call: u32,
    pub(crate) purpose: Purpose,
    /// The record that announced it.
    pub(crate) at: Seq,
}

/// A turn that is to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StopRequest {
    pub(crate) cause: Cause,
    pub(crate) at: Timestamp,
}

/// An item that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenItem {
    /// The item as it began.
    pub item: Item,
    /// Its texts so far.
    #[serde(with = "texts")]
    pub texts: BTreeMap<ItemPart, String>,
    /// The call of the model it came with.
    pub(crate) call: u32,
    pub(crate) gate: Option<Gate>,
    /// Whether its tool may start.
    pub(crate) ready: bool,
    /// Whether its tool was started.
    pub(crate) started: bool,
    /// The digest of the act that policy judged, or someone allowed.
    #[serde(default)]
    pub(crate) digest: Option<String>,
    /// Bytes of text since it began or was last saved.
    pub(crate) unsaved_bytes: u64,
    /// The record with which it began.
    pub(crate) began: Seq,
    /// The record that saved it last. What its text was between these two can no longer be told.
    pub(crate) saved: Option<Seq>,
}

/// JSON has no keys but strings.
mod texts {
    use super::{BTreeMap, ItemPart};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        texts: &BTreeMap<ItemPart, String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        texts.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<ItemPart, String>, D::Error> {
        Vec::<(ItemPart, String)>::deserialize(deserializer)
            .map(|texts| texts.into_iter().collect())
    }
}

impl OpenItem {
    /// Whether it is a command without a yes. Clients hear that a thread waits before they see the command.
    fn waits(&self) -> bool {
        let is_command = matches!(self.item.body, ItemBody::Command(_));
        is_command && self.gate == Some(Gate::Approval) && !self.ready
    }

    /// Whether a client runs it.
    pub(crate) fn is_clients(&self) -> bool {
        matches!(self.item.body, ItemBody::ClientTool(_))
    }

    /// Whether it carries out a call of the model.
    pub fn is_tool(&self) -> bool {
        self.item.call.is_some()
    }

    /// Whether it is something that the model writes.
    pub(crate) fn is_text(&self) -> bool {
        !self.is_tool() && !self.item.is_users_command()
    }

    /// The digest of the act that it needs someone's yes for; once it was started, that it has.
    pub fn approved_digest(&self) -> Option<&str> {
        let digest = self.digest.as_deref();
        digest.filter(|_| self.gate == Some(Gate::Approval))
    }

    /// The item with the text it has so far.
    pub fn so_far(&self) -> Item {
        let mut item =
            super::closing::last_form(self, ItemStatus::InProgress, self.item.started_at);
        item.completed_at = None;
        item
    }

    /// Bytes of all its texts.
    pub fn bytes(&self) -> u64 {
        self.texts.values().map(|text| text.len() as u64).sum()
    }
}

/// The newest turn that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastTurn {
    /// Its id.
    pub id: TurnId,
    /// The turn it goes back to.
    pub root: Option<TurnId>,
    /// How it ended.
    pub end: TurnEnd,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its last message.
    pub answer: Option<Box<Item>>,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing.
    Idle,
    /// Nothing, and its newest turn failed.
    Failed,
    /// A turn runs.
    Active {
        /// It waits for someone's yes.
        waits_for_approval: bool,
        /// It waits for someone's answer.
        waits_for_input: bool,
    },
}

/// The thread as it was at some point, as far as going back to it needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct RevertPoint {
    /// What of the history counted.
    pub lineage: Vec<Span>,
    /// How many turns counted.
    pub turns: u64,
    /// About how many tokens the model's context held.
    pub context_tokens: u64,
}

/// A snapshot of a thread's whole state. It can be dropped and made again from the records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Base {
    /// The form of the state.
    pub version: u32,
    /// The state.
    pub thread: Thread,
}

/// What becomes of a client that comes back with the last number it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorStatus {
    /// It gets what came after.
    Good,
    /// What it saw may not be what is stored; it needs a snapshot.
    Expired,
}

impl Base {
    /// The form of state that this version writes.
    pub const VERSION: u32 = 4;

    /// A snapshot of a thread.
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
    /// Before its first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// The newest record that was folded in.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Its id, once it was started.
    pub fn id(&self) -> Option<ThreadId> {
        self.identity.as_ref().map(|it| it.thread)
    }

    /// The newest epoch.
    pub fn epoch(&self) -> Epoch {
        self.owner.as_ref().map_or(Epoch(0), |owner| owner.epoch)
    }

    /// The node that has it, or had it last.
    pub fn node(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.node.as_str())
    }

    /// The node that has it, unless that left it in good order.
    pub fn owner(&self) -> Option<&str> {
        let owner = self.owner.as_ref()?;
        (!owner.released).then_some(owner.node.as_str())
    }

    /// How much of the vocabulary its newest owner may have written; above [`LEVEL`](crate::LEVEL) it means
    /// more than is known here.
    pub fn level(&self) -> u32 {
        self.owner
            .as_ref()
            .map_or(crate::LEVEL, |owner| owner.level)
    }

    /// The last number its owner may use.
    pub fn reserved(&self) -> Seq {
        self.owner
            .as_ref()
            .map_or(Seq::ZERO, |owner| owner.reserved)
    }

    /// How turns run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How the turn that runs does so: with whom it has fallen back to.
    pub fn routed(&self) -> Settings {
        let mut settings = self.settings.clone();
        if let Some(route) = self.route() {
            settings.model = Some(route.model.clone());
            settings.provider = Some(route.provider.clone());
        }
        settings
    }

    /// The rights beyond the fence that someone gave, for the session and for the turn.
    pub fn rights(&self) -> Grant {
        let mut rights = self.rights.clone();
        if let Some(turn) = &self.turn {
            rights.write.extend(turn.rights.write.iter().cloned());
            rights.network |= turn.rights.network;
        }
        rights
    }

    /// Whom the turn that runs has fallen back to, if it has.
    pub(crate) fn route(&self) -> Option<&Route> {
        let fallen = self.turn.as_ref()?.fallen;
        self.settings.fallback.get(fallen.checked_sub(1)?)
    }

    /// How often in a row the history of the turn that runs did not fit the model.
    pub fn overflows(&self) -> u32 {
        self.turn.as_ref().map_or(0, |turn| turn.overflows)
    }

    /// Its name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether it is hidden from ordinary lists.
    pub fn is_archived(&self) -> bool {
        self.archived
    }

    /// Whether it is to be forgotten.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// How many turns count.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The turn that runs.
    pub fn turn(&self) -> Option<&OpenTurn> {
        self.turn.as_ref()
    }

    /// The newest turn that ended.
    pub fn last_turn(&self) -> Option<&LastTurn> {
        self.last_turn.as_ref()
    }

    /// The requests that are open.
    pub fn requests(&self) -> impl Iterator<Item = (RequestNumber, &OpenRequest)> {
        self.requests.iter().map(|(number, open)| (*number, open))
    }

    /// The digests of acts that have a yes until the session ends.
    pub fn granted(&self) -> BTreeSet<String> {
        self.granted.iter().cloned().collect()
    }

    /// Tokens of all calls of the model.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What of the history counts for the model's context.
    pub fn lineage(&self) -> &[Span] {
        &self.lineage
    }

    /// The thread as going back to this point needs it.
    pub fn revert_point(&self) -> RevertPoint {
        RevertPoint {
            lineage: self.lineage.clone(),
            turns: self.turns,
            context_tokens: self.context_tokens,
        }
    }

    /// What it is doing. Computed, never stored.
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

    /// Whether a client that saw everything up to `seen` can be given the rest.
    pub fn cursor(&self, seen: Seq) -> CursorStatus {
        let lost = |gap: &Gap| gap.after < seen && seen < gap.before;
        let identity = self.identity.as_ref();
        let is_fork = identity.is_some_and(|it| it.forked_from.is_some());
        if seen == Seq::ZERO && !is_fork {
            return CursorStatus::Good;
        }
        let items = self.turn.iter().flat_map(|turn| &turn.items);
        // The deltas that would lead from what was seen to what is saved are gone.
        let merged = |open: &OpenItem| open.began <= seen && open.saved.is_some_and(|at| seen < at);
        let unknown = seen > self.head || seen < self.judged_from;
        if unknown || self.gaps.iter().any(lost) || items.into_iter().any(merged) {
            CursorStatus::Expired
        } else {
            CursorStatus::Good
        }
    }

    /// When something is to be decided although nothing comes in.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let turn = self.turn.as_ref();
        // With nothing to ask the model, a turn waits only for what the user runs.
        let retry = turn.filter(|turn| turn.items.is_empty() || turn.is_to_ask());
        let retry = retry.and_then(|turn| turn.retry_at);
        let stop = turn
            .and_then(|turn| turn.stopping.as_ref())
            .map(|stopping| stopping.at.plus_ms(super::closing::STOP_MS_MAX));
        let expiry = self.requests.values().filter_map(|open| open.expires_at);
        let waits = retry.into_iter().chain(stop).chain(expiry);
        waits.chain(self.time_is_up()).min()
    }

    /// Whether a client was asked to run an item.
    pub(crate) fn is_with_client(&self, item: &ItemId) -> bool {
        let mut requests = self.requests.values();
        requests.any(|open| open.item == *item && open.ask == Ask::ClientTool {})
    }

    pub(crate) fn open_item(&self, id: &ItemId) -> Option<&OpenItem> {
        let turn = self.turn.as_ref()?;
        turn.items.iter().find(|open| open.item.id == *id)
    }
}
