//! A client's view of a thread: the notifications of the wire, folded, and nothing else.
//!
//! A client knows no records. Two clients agree when their views are equal, however each of them
//! got its own.

use std::collections::BTreeMap;

use raddle_core::{
    Ask, ItemId, ItemPart, Record, RequestNumber, Seq, Thread, TurnId, notifications_on_replay,
};
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
    /// Texts so far; empty once it is complete.
    texts: BTreeMap<ItemPart, String>,
    open: bool,
}

/// Notifications of a record: only the last carries its number.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnouncedRecord {
    /// Number of the record.
    pub seq: Seq,
    /// Notifications of the record, in order.
    pub notifications: Vec<Notification>,
}

/// A request as it is sent to a client.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    /// Number of the request.
    pub number: RequestNumber,
    /// Id on the wire.
    pub id: RequestId,
    /// Item that it is about.
    pub item: ItemId,
    /// Content of the request.
    pub ask: Ask,
    /// Ids of the hunks that the client may choose among.
    pub hunks: Vec<String>,
}

/// Description of a notification that contradicts the view.
pub type ViewError = String;

impl ClientView {
    /// Builds the view of a new client from the remaining records of a thread. The live thread has
    /// the texts of open items, whose records may be gone.
    pub fn snapshot<'a>(
        rows: impl Iterator<Item = &'a LogRow>,
        live: &Thread,
    ) -> Result<Self, ViewError> {
        let mut view = Self::default();
        let mut thread = Thread::new();
        for row in rows {
            view.replay(&mut thread, &row.record)?;
        }
        for open in live.turn().into_iter().flat_map(|turn| &turn.items) {
            let Some(item_view) = view.items.get_mut(&open.item.id) else {
                return Err(format!("{} is open and was never announced", open.item.id));
            };
            item_view.texts.clone_from(&open.texts);
        }
        Ok(view)
    }

    /// Applies one more record, as a reconnecting client receives it.
    pub fn replay(&mut self, thread: &mut Thread, record: &Record) -> Result<(), ViewError> {
        self.apply_all(&notifications_on_replay(thread, record))
    }

    /// Applies all notifications of a record.
    pub fn apply_all(&mut self, notifications: &[Notification]) -> Result<(), ViewError> {
        notifications
            .iter()
            .try_for_each(|notification| self.apply(notification))
    }

    /// Applies one more notification.
    pub fn apply(&mut self, notification: &Notification) -> Result<(), ViewError> {
        match notification {
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
                let item_view = ItemView {
                    turn: it.turn_id.clone(),
                    item: it.item.clone(),
                    texts: BTreeMap::new(),
                    open: true,
                };
                self.items.insert(id, item_view);
            }
            Notification::ItemCompleted(it) => {
                let item_view = self.open_item(&id_of(&it.item)?)?;
                item_view.item = it.item.clone();
                item_view.texts.clear();
                item_view.open = false;
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
            // A client reads the queue again when it changed.
            Notification::ThreadQueueChanged(_) => {}
            // A client reads the history again after a revert. Errors and warnings are shown when
            // they come, and requests are kept beside the view.
            Notification::ThreadReverted(_)
            | Notification::Error(_)
            | Notification::Warning(_)
            | Notification::ServerRequestResolved(_) => {}
            other => return Err(format!("nobody expects {}", other.method())),
        }
        Ok(())
    }

    /// Returns the running turn.
    pub fn running(&self) -> Option<&TurnId> {
        self.running.as_ref()
    }

    /// Whether an item is open.
    pub fn is_open(&self, id: &ItemId) -> bool {
        self.items.get(id).is_some_and(|item| item.open)
    }

    /// Describes the first difference to another view.
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
        let item_view = self.open_item(id)?;
        item_view.texts.entry(part).or_default().push_str(text);
        Ok(())
    }
}

fn index(index: i64) -> Result<u32, ViewError> {
    u32::try_from(index).map_err(|_| format!("there is no part {index}"))
}

/// Returns the id of an item of the kinds that occur here.
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
