//! A thread as a client knows it: the fold of what it was told.

use raddle_protocol::*;
use serde::Deserialize;

use crate::{ServerQuestion, ThreadEvent};

/// The most parts that reasoning is thought to have.
const PARTS_MAX: i64 = 4096;

/// A thread with its turns, their items with their text so far, and what is open.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadView {
    /// The thread. Its turns are all that were told or shown; of a long thread the server shows the newest first,
    /// and `thread/turns/list` has the rest.
    pub thread: Thread,
    /// The model in use when the thread was opened.
    pub model: String,
    /// Its provider.
    pub model_provider: String,
    /// The folder that was worked in.
    pub cwd: String,
    /// When people were asked, as it was when the thread was opened.
    pub approval_policy: Option<AskForApproval>,
    /// What the server asks and is not settled, oldest first.
    pub questions: Vec<OpenQuestion>,
    /// The tokens used, as far as they were told.
    pub usage: Option<ThreadTokenUsage>,
    /// The agent's newest plan.
    pub plan: Option<TurnPlanUpdatedNotification>,
    /// The newest turn's changes to files.
    pub diff: Option<TurnDiffUpdatedNotification>,
    /// The number of the last record that was told.
    pub seq: Option<u64>,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// Its id, to answer it with [`Client::answer`](crate::Client::answer).
    pub id: RequestId,
    /// What is asked.
    pub question: ServerQuestion,
}

/// What the answers to `thread/start`, `thread/resume` and `thread/fork` have in common.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadHead {
    /// The thread.
    pub thread: Thread,
    /// The model in use.
    pub model: String,
    /// Its provider.
    pub model_provider: String,
    /// The folder that is worked in.
    pub cwd: String,
    /// When people are asked.
    pub approval_policy: Option<AskForApproval>,
}

impl ThreadView {
    pub(crate) fn of(head: ThreadHead) -> Self {
        Self {
            thread: head.thread,
            model: head.model,
            model_provider: head.model_provider,
            cwd: head.cwd,
            approval_policy: head.approval_policy,
            questions: Vec::new(),
            usage: None,
            plan: None,
            diff: None,
            seq: None,
        }
    }

    /// The turn that runs, if one does.
    pub fn running(&self) -> Option<&Turn> {
        self.thread
            .turns
            .last()
            .filter(|turn| Self::is_running(turn))
    }

    /// Whether a turn has not ended.
    pub fn is_running(turn: &Turn) -> bool {
        turn.status == TurnStatus::InProgress
    }

    /// The text of the agent's last message, as far as it was told.
    pub fn last_message(&self) -> Option<&str> {
        let items = self
            .thread
            .turns
            .iter()
            .rev()
            .flat_map(|it| it.items.iter().rev());
        items
            .filter_map(|item| match item {
                ThreadItem::AgentMessage(message) => Some(message.text.as_str()),
                _ => None,
            })
            .next()
    }

    /// An item, by its turn and its id.
    pub fn item(&self, turn: &TurnId, id: &ItemId) -> Option<&ThreadItem> {
        let turn = self.thread.turns.iter().rev().find(|it| it.id == *turn)?;
        turn.items.iter().rev().find(|item| id_of(item) == Some(id))
    }

    pub(crate) fn apply(&mut self, happening: &ThreadEvent) {
        match happening {
            ThreadEvent::Notification { notification, seq } => {
                self.seq = seq.or(self.seq);
                self.told(notification);
            }
            ThreadEvent::Unknown { seq, .. } => self.seq = seq.or(self.seq),
            ThreadEvent::Question(asked) => {
                self.questions.retain(|it| it.id != asked.id);
                self.questions.push(asked.clone());
            }
            ThreadEvent::Reset(head) => {
                let usage = self.usage.take();
                *self = Self::of(ThreadHead::clone(head));
                self.usage = usage;
            }
            ThreadEvent::Disconnected { .. }
            | ThreadEvent::Reconnected
            | ThreadEvent::Lost { .. } => {}
        }
    }

    fn told(&mut self, notification: &Notification) {
        match notification {
            Notification::ThreadStatusChanged(it) => self.thread.status = it.status.clone(),
            Notification::ThreadNameUpdated(it) => self.thread.name.clone_from(&it.thread_name),
            Notification::ThreadTokenUsageUpdated(it) => self.usage = Some(it.token_usage.clone()),
            Notification::TurnStarted(it) => self.turn(&it.turn),
            Notification::TurnCompleted(it) => {
                self.turn(&it.turn);
                let is_of = |asked: &OpenQuestion| asked.question.turn() == Some(&it.turn.id);
                self.questions.retain(|asked| !is_of(asked));
            }
            Notification::TurnPlanUpdated(it) => self.plan = Some(it.clone()),
            Notification::TurnDiffUpdated(it) => self.diff = Some(it.clone()),
            Notification::ItemStarted(it) => self.put(&it.turn_id, &it.item),
            Notification::ItemCompleted(it) => self.put(&it.turn_id, &it.item),
            Notification::ServerRequestResolved(it) => {
                self.questions.retain(|asked| asked.id != it.request_id);
            }
            Notification::AgentMessageDelta(it) => {
                if let Some(ThreadItem::AgentMessage(item)) = self.open(&it.turn_id, &it.item_id) {
                    item.text.push_str(&it.delta);
                }
            }
            Notification::PlanDelta(it) => {
                if let Some(ThreadItem::Plan(item)) = self.open(&it.turn_id, &it.item_id) {
                    item.text.push_str(&it.delta);
                }
            }
            Notification::ReasoningSummaryPartAdded(it) => {
                if let Some(ThreadItem::Reasoning(item)) = self.open(&it.turn_id, &it.item_id) {
                    grow(&mut item.summary, it.summary_index, "");
                }
            }
            Notification::ReasoningSummaryTextDelta(it) => {
                if let Some(ThreadItem::Reasoning(item)) = self.open(&it.turn_id, &it.item_id) {
                    grow(&mut item.summary, it.summary_index, &it.delta);
                }
            }
            Notification::ReasoningTextDelta(it) => {
                if let Some(ThreadItem::Reasoning(item)) = self.open(&it.turn_id, &it.item_id) {
                    grow(&mut item.content, it.content_index, &it.delta);
                }
            }
            Notification::CommandExecutionOutputDelta(it) => {
                let item = self.open(&it.turn_id, &it.item_id);
                if let Some(ThreadItem::CommandExecution(item)) = item {
                    let output = item.aggregated_output.get_or_insert_default();
                    output.push_str(&it.delta);
                }
            }
            Notification::FileChangePatchUpdated(it) => {
                if let Some(ThreadItem::FileChange(item)) = self.open(&it.turn_id, &it.item_id) {
                    item.changes.clone_from(&it.changes);
                }
            }
            // Everything else says nothing about the thread, its turns or its items; after `thread/reverted` it
            // is shown anew.
            _ => {}
        }
    }

    /// Takes over what is said of a turn. The items are known better here.
    fn turn(&mut self, told: &Turn) {
        let turns = &mut self.thread.turns;
        let known = turns.iter_mut().rev().find(|turn| turn.id == told.id);
        let items = known.as_ref().map_or_else(Vec::new, |it| it.items.clone());
        let turn = Turn {
            items,
            items_view: TurnItemsView::Full,
            ..told.clone()
        };
        match known {
            Some(known) => *known = turn,
            None => turns.push(turn),
        }
    }

    /// An item that began or ended, and says all of itself.
    fn put(&mut self, turn: &TurnId, item: &ThreadItem) {
        let mut turns = self.thread.turns.iter_mut().rev();
        let Some(turn) = turns.find(|it| it.id == *turn) else {
            return;
        };
        let mut items = turn.items.iter_mut().rev();
        match items.find(|known| id_of(known) == id_of(item)) {
            Some(known) => known.clone_from(item),
            None => turn.items.push(item.clone()),
        }
    }

    fn open(&mut self, turn: &TurnId, item: &ItemId) -> Option<&mut ThreadItem> {
        let mut turns = self.thread.turns.iter_mut().rev();
        let turn = turns.find(|it| it.id == *turn)?;
        let mut items = turn.items.iter_mut().rev();
        items.find(|known| id_of(known) == Some(item))
    }
}

/// Adds text to a part, which may be a new one.
fn grow(parts: &mut Vec<String>, index: i64, delta: &str) {
    let Ok(index) = usize::try_from(index.min(PARTS_MAX)) else {
        return;
    };
    if parts.len() <= index {
        parts.resize(index + 1, String::new());
    }
    parts[index].push_str(delta);
}

/// The id of an item; one of a kind that is not known here has none.
fn id_of(item: &ThreadItem) -> Option<&ItemId> {
    Some(match item {
        ThreadItem::UserMessage(it) => &it.id,
        ThreadItem::HookPrompt(it) => &it.id,
        ThreadItem::AgentMessage(it) => &it.id,
        ThreadItem::FunctionCallOutput(it) => &it.id,
        ThreadItem::Plan(it) => &it.id,
        ThreadItem::Reasoning(it) => &it.id,
        ThreadItem::CommandExecution(it) => &it.id,
        ThreadItem::FileChange(it) => &it.id,
        ThreadItem::McpToolCall(it) => &it.id,
        ThreadItem::DynamicToolCall(it) => &it.id,
        ThreadItem::CollabAgentToolCall(it) => &it.id,
        ThreadItem::SubAgentActivity(it) => &it.id,
        ThreadItem::WebSearch(it) => &it.id,
        ThreadItem::ImageView(it) => &it.id,
        ThreadItem::Sleep(it) => &it.id,
        ThreadItem::ImageGeneration(it) => &it.id,
        ThreadItem::EnteredReviewMode(it) => &it.id,
        ThreadItem::ExitedReviewMode(it) => &it.id,
        ThreadItem::ContextCompaction(it) => &it.id,
        ThreadItem::Unrecognized(_) => return None,
    })
}
