//! A thread as the client knows it: the fold of its notifications.

use raddle_protocol::*;
use serde::Deserialize;

use crate::{ServerQuestion, ThreadEvent};

/// Maximum number of parts of a reasoning item.
const PARTS_MAX: i64 = 4096;

/// A thread with its turns, their items with the text so far, and the open questions.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadView {
    /// The thread with all turns that this client received. A server sends only the newest turns of
    /// a long thread; `thread/turns/list` returns the rest.
    pub thread: Thread,
    /// The model, as of when the thread was opened.
    pub model: String,
    /// The model's provider, as of then.
    pub model_provider: String,
    /// The working directory, as of then.
    pub cwd: String,
    /// When the user is asked for approval, as of when the thread was opened.
    pub approval_policy: Option<AskForApproval>,
    /// The sandbox of its commands, as of then.
    pub sandbox: Option<SandboxPolicy>,
    /// The permission profile of that sandbox, if it has one.
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// The budget limits of a resumed thread, as of then.
    pub budget: Option<Budget>,
    /// Unresolved requests of the server, oldest first.
    pub questions: Vec<OpenQuestion>,
    /// Token usage, if the server has sent it.
    pub usage: Option<ThreadTokenUsage>,
    /// The agent's newest plan.
    pub plan: Option<TurnPlanUpdatedNotification>,
    /// The newest turn's changes to files.
    pub diff: Option<TurnDiffUpdatedNotification>,
    /// Sequence number of the last record.
    pub seq: Option<u64>,
}

/// An unresolved request of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// Id to pass to [`Client::answer`](crate::Client::answer).
    pub id: RequestId,
    /// The server's request to answer.
    pub question: ServerQuestion,
}

/// Common members of the responses to `thread/start`, `thread/resume` and `thread/fork`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadHead {
    /// The thread, with its newest turns.
    pub thread: Thread,
    /// The model in use.
    pub model: String,
    /// Provider of the model, as the server's configuration names it.
    pub model_provider: String,
    /// Working directory of the thread.
    pub cwd: String,
    /// When the user is asked for approval.
    pub approval_policy: Option<AskForApproval>,
    /// The sandbox of its commands.
    pub sandbox: Option<SandboxPolicy>,
    /// The permission profile of that sandbox, if it has one.
    pub active_permission_profile: Option<ActivePermissionProfile>,
    /// The budget limits, in the response to `thread/resume`.
    pub budget: Option<Budget>,
}

impl ThreadView {
    pub(crate) fn of(head: ThreadHead) -> Self {
        Self {
            thread: head.thread,
            model: head.model,
            model_provider: head.model_provider,
            cwd: head.cwd,
            approval_policy: head.approval_policy,
            sandbox: head.sandbox,
            active_permission_profile: head.active_permission_profile,
            budget: head.budget,
            questions: Vec::new(),
            usage: None,
            plan: None,
            diff: None,
            seq: None,
        }
    }

    /// The running turn, if any.
    pub fn running(&self) -> Option<&Turn> {
        self.thread
            .turns
            .last()
            .filter(|turn| Self::is_running(turn))
    }

    /// Whether a turn is in progress.
    pub fn is_running(turn: &Turn) -> bool {
        turn.status == TurnStatus::InProgress
    }

    /// The text of the agent's last message so far.
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

    pub(crate) fn apply(&mut self, event: &ThreadEvent) {
        match event {
            ThreadEvent::Notification { notification, seq } => {
                self.seq = seq.or(self.seq);
                self.apply_notification(notification);
            }
            ThreadEvent::Unknown { seq, .. } => self.seq = seq.or(self.seq),
            ThreadEvent::Question(question) => {
                self.questions.retain(|it| it.id != question.id);
                self.questions.push(question.clone());
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

    fn apply_notification(&mut self, notification: &Notification) {
        match notification {
            Notification::ThreadStatusChanged(it) => self.thread.status = it.status.clone(),
            Notification::ThreadNameUpdated(it) => self.thread.name.clone_from(&it.thread_name),
            Notification::ThreadTokenUsageUpdated(it) => self.usage = Some(it.token_usage.clone()),
            Notification::TurnStarted(it) => self.turn(&it.turn),
            Notification::TurnCompleted(it) => {
                self.turn(&it.turn);
                let is_of = |question: &OpenQuestion| question.question.turn() == Some(&it.turn.id);
                self.questions.retain(|question| !is_of(question));
            }
            Notification::TurnPlanUpdated(it) => self.plan = Some(it.clone()),
            Notification::TurnDiffUpdated(it) => self.diff = Some(it.clone()),
            Notification::ItemStarted(it) => self.put(&it.turn_id, &it.item),
            Notification::ItemCompleted(it) => self.put(&it.turn_id, &it.item),
            Notification::ServerRequestResolved(it) => {
                self.questions
                    .retain(|question| question.id != it.request_id);
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
            // No other notification changes the thread, its turns or its items. After
            // `thread/reverted` the thread is loaded again.
            _ => {}
        }
    }

    /// Replaces a turn but keeps its items: notifications of turns do not carry them.
    fn turn(&mut self, update: &Turn) {
        let turns = &mut self.thread.turns;
        let known = turns.iter_mut().rev().find(|turn| turn.id == update.id);
        let items = known.as_ref().map_or_else(Vec::new, |it| it.items.clone());
        let turn = Turn {
            items,
            items_view: TurnItemsView::Full,
            ..update.clone()
        };
        match known {
            Some(known) => *known = turn,
            None => turns.push(turn),
        }
    }

    /// Inserts or replaces an item that started or completed.
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

/// Appends text to a part, which may be a new one.
fn grow(parts: &mut Vec<String>, index: i64, delta: &str) {
    let Ok(index) = usize::try_from(index.min(PARTS_MAX)) else {
        return;
    };
    if parts.len() <= index {
        parts.resize(index + 1, String::new());
    }
    parts[index].push_str(delta);
}

/// The id of an item; `None` for an unknown kind of item.
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
