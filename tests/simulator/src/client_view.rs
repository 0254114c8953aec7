//! What a client makes of what it is told: the notifications of the wire, folded, and nothing else.
//!
//! A client knows no records. Two clients are of one mind when their pictures are equal, whatever way each
//! of them came by its own.

use std::collections::BTreeMap;

use raddle_core::{Ask, ItemId, ItemPart, Record, RequestNumber, Seq, Thread, TurnId, tell_again};
use raddle_protocol::{
    Notification, RequestId, ThreadGoal, ThreadItem, ThreadSettings, ThreadStatus,
    ThreadTokenUsage, Turn, TurnPlanStep, TurnStatus,
};

use crate::store::LogRow;

/// A thread as a client sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientView {
    thread: Option<Box<raddle_protocol::Thread>>,
    status: Option<ThreadStatus>,
    name: Option<String>,
    archived: bool,
    deleted: bool,
    settings: Option<Box<ThreadSettings>>,
    usage: Option<ThreadTokenUsage>,
    goal: Option<ThreadGoal>,
    running: Option<TurnId>,
    turns: BTreeMap<TurnId, TurnView>,
    items: BTreeMap<ItemId, ItemView>,
}

#[derive(Clone, Debug, PartialEq)]
struct TurnView {
    turn: Turn,
    diff: String,
    plan: Vec<TurnPlanStep>,
}

#[derive(Clone, Debug, PartialEq)]
struct ItemView {
    turn: TurnId,
    item: ThreadItem,
    /// What it says so far; nothing once it is whole.
    texts: BTreeMap<ItemPart, String>,
    open: bool,
}

/// What a record is told as: only the last word carries its number.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldRecord {
    /// The record's number.
    pub seq: Seq,
    /// In this order.
    pub notifications: Vec<Notification>,
}

/// A request as it is put to a client.
#[derive(Clone, Debug, PartialEq)]
pub struct PutRequest {
    /// Its number.
    pub number: RequestNumber,
    /// Its name on the wire.
    pub id: RequestId,
    /// The item it is about.
    pub item: ItemId,
    /// What is asked.
    pub ask: Ask,
}

/// What a client was told that makes no sense to it.
pub type ViewError = String;

impl ClientView {
    /// What the records that are left of a thread tell someone who knows nothing yet. Of what is open, the
    /// thread that is live knows the text: the records of it may be gone.
    pub fn snapshot<'a>(
        rows: impl Iterator<Item = &'a LogRow>,
        live: &Thread,
    ) -> Result<Self, ViewError> {
        let mut picture = Self::default();
        let mut thread = Thread::new();
        for row in rows {
            picture.replay(&mut thread, &row.record)?;
        }
        for open in live.turn().into_iter().flat_map(|turn| &turn.items) {
            let Some(seen) = picture.items.get_mut(&open.item.id) else {
                return Err(format!("{} is open and was never told", open.item.id));
            };
            seen.texts.clone_from(&open.texts);
        }
        Ok(picture)
    }

    /// One more record, as someone hears it who comes back.
    pub fn replay(&mut self, thread: &mut Thread, record: &Record) -> Result<(), ViewError> {
        self.hear_all(&tell_again(thread, record))
    }

    /// All that is told of a record.
    pub fn hear_all(&mut self, told: &[Notification]) -> Result<(), ViewError> {
        told.iter()
            .try_for_each(|notification| self.hear(notification))
    }

    /// One more notification.
    pub fn hear(&mut self, told: &Notification) -> Result<(), ViewError> {
        match told {
            Notification::ThreadStarted(it) => {
                self.status = Some(it.thread.status.clone());
                self.name.clone_from(&it.thread.name);
                self.archived = false;
                self.thread = Some(Box::new(it.thread.clone()));
                self.goal = None;
            }
            Notification::ThreadGoalUpdated(it) => self.goal = Some(it.goal.clone()),
            Notification::ThreadGoalCleared(_) => self.goal = None,
            Notification::ThreadStatusChanged(it) => self.status = Some(it.status.clone()),
            Notification::ThreadArchived(_) => self.archived = true,
            Notification::ThreadUnarchived(_) => self.archived = false,
            Notification::ThreadDeleted(_) => self.deleted = true,
            Notification::ThreadNameUpdated(it) => self.name.clone_from(&it.thread_name),
            Notification::ThreadSettingsUpdated(it) => {
                self.settings = Some(Box::new(it.thread_settings.clone()));
            }
            Notification::ThreadTokenUsageUpdated(it) => {
                self.usage = Some(it.token_usage.clone());
            }
            Notification::TurnStarted(it) => {
                let turn = TurnView {
                    turn: it.turn.clone(),
                    diff: String::new(),
                    plan: Vec::new(),
                };
                self.running = Some(it.turn.id.clone());
                self.turns.insert(it.turn.id.clone(), turn);
            }
            Notification::TurnCompleted(it) => {
                if it.turn.status == TurnStatus::InProgress {
                    return Err(format!("{} is over and goes on", it.turn.id));
                }
                self.turn(&it.turn.id)?.turn = it.turn.clone();
                self.running = None;
            }
            Notification::TurnDiffUpdated(it) => {
                self.turn(&it.turn_id)?.diff.clone_from(&it.diff);
            }
            Notification::TurnPlanUpdated(it) => {
                self.turn(&it.turn_id)?.plan.clone_from(&it.plan);
            }
            Notification::ItemStarted(it) => {
                let id = id_of(&it.item)?;
                self.turn(&it.turn_id)?;
                let seen = ItemView {
                    turn: it.turn_id.clone(),
                    item: it.item.clone(),
                    texts: BTreeMap::new(),
                    open: true,
                };
                self.items.insert(id, seen);
            }
            Notification::ItemCompleted(it) => {
                let seen = self.open_item(&id_of(&it.item)?)?;
                seen.item = it.item.clone();
                seen.texts.clear();
                seen.open = false;
            }
            Notification::AgentMessageDelta(it) => {
                self.grow(&it.item_id, ItemPart::Text, &it.delta)?
            }
            Notification::PlanDelta(it) => self.grow(&it.item_id, ItemPart::Text, &it.delta)?,
            Notification::ReasoningSummaryTextDelta(it) => {
                let part = ItemPart::Summary(index(it.summary_index)?);
                self.grow(&it.item_id, part, &it.delta)?;
            }
            Notification::ReasoningTextDelta(it) => {
                let part = ItemPart::Content(index(it.content_index)?);
                self.grow(&it.item_id, part, &it.delta)?;
            }
            Notification::CommandExecutionOutputDelta(it) => {
                self.grow(&it.item_id, ItemPart::Printed, &it.delta)?;
            }
            // What waits is read anew when it changed.
            Notification::ThreadQueueChanged(_) => {}
            // A client reads the history anew when some of it was taken back. Errors and warnings are shown
            // when they come, and requests are kept beside the picture.
            Notification::ThreadReverted(_)
            | Notification::Error(_)
            | Notification::Warning(_)
            | Notification::ServerRequestResolved(_) => {}
            other => return Err(format!("nobody expects {}", other.method())),
        }
        Ok(())
    }

    /// The turn that runs.
    pub fn running(&self) -> Option<&TurnId> {
        self.running.as_ref()
    }

    /// Whether an item is open.
    pub fn is_open(&self, id: &ItemId) -> bool {
        self.items.get(id).is_some_and(|item| item.open)
    }

    /// Where it is unlike another.
    pub fn differs(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        let items = || self.items.keys().chain(other.items.keys());
        let unlike = |id: &&ItemId| self.items.get(*id) != other.items.get(*id);
        if let Some(id) = items().find(unlike) {
            let (one, two) = (self.items.get(id), other.items.get(id));
            return Some(format!("{one:?} instead of {two:?}"));
        }
        let mut turns = self.turns.keys().chain(other.turns.keys());
        if let Some(id) = turns.find(|id| self.turns.get(*id) != other.turns.get(*id)) {
            let (one, two) = (self.turns.get(id), other.turns.get(id));
            return Some(format!("{one:?} instead of {two:?}"));
        }
        let rest = |it: &Self| {
            let Self {
                status,
                name,
                archived,
                deleted,
                usage,
                goal,
                running,
                ..
            } = it.clone();
            format!("{status:?} {name:?} {archived} {deleted} {usage:?} {goal:?} {running:?}")
        };
        Some(format!("{} instead of {}", rest(self), rest(other)))
    }

    fn turn(&mut self, id: &TurnId) -> Result<&mut TurnView, ViewError> {
        self.turns
            .get_mut(id)
            .ok_or_else(|| format!("nobody was told of {id}"))
    }

    fn open_item(&mut self, id: &ItemId) -> Result<&mut ItemView, ViewError> {
        let open = self.items.get_mut(id).filter(|item| item.open);
        open.ok_or_else(|| format!("more of {id}, which is not open"))
    }

    fn grow(&mut self, id: &ItemId, part: ItemPart, text: &str) -> Result<(), ViewError> {
        let seen = self.open_item(id)?;
        seen.texts.entry(part).or_default().push_str(text);
        Ok(())
    }
}

fn index(index: i64) -> Result<u32, ViewError> {
    u32::try_from(index).map_err(|_| format!("there is no part {index}"))
}

/// The id of an item of the kinds that occur here.
fn id_of(item: &ThreadItem) -> Result<ItemId, ViewError> {
    Ok(match item {
        ThreadItem::UserMessage(it) => it.id.clone(),
        ThreadItem::AgentMessage(it) => it.id.clone(),
        ThreadItem::Plan(it) => it.id.clone(),
        ThreadItem::Reasoning(it) => it.id.clone(),
        ThreadItem::CommandExecution(it) => it.id.clone(),
        ThreadItem::FileChange(it) => it.id.clone(),
        ThreadItem::DynamicToolCall(it) => it.id.clone(),
        ThreadItem::ContextCompaction(it) => it.id.clone(),
        other => return Err(format!("nobody expects {other:?}")),
    })
}
