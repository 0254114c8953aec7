//! Threads as lists show them.

use serde::{Deserialize, Serialize};

use super::ListOrder;
use crate::bugs::{Bug, planted};
use crate::{
    Epoch, Event, Git, Input, ItemBody, Record, RecordBody, Seq, Settings, Thread, ThreadId,
    ThreadSource, Timestamp, UserMessage,
};

/// A thread as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Id of the thread.
    pub thread: ThreadId,
    /// Tenant that owns it.
    pub tenant: Option<String>,
    /// Principal that started it.
    pub principal: Option<String>,
    /// Name of the thread, if it has one.
    pub name: Option<String>,
    /// Beginning of the user's first message.
    pub preview: String,
    /// Working folder of the thread.
    pub cwd: String,
    /// Provider of the thread's model.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Reasoning effort of the model.
    pub effort: Option<String>,
    /// Whether ordinary lists hide it.
    pub archived: bool,
    /// Number of turns that count.
    pub turns: u64,
    /// Time at which the thread began.
    pub created_at: Timestamp,
    /// Start of the newest turn, or else of the thread.
    pub recency_at: Timestamp,
    /// Time of the last change: see [`Event::is_change`].
    pub updated_at: Timestamp,
    /// Origin of the thread.
    pub origin: Origin,
    /// Owner and current work.
    pub activity: Activity,
    /// Number of its newest record.
    pub head: Seq,
}

/// Owner and current work of a thread, as its records say. They say the same after the owner died:
/// then nothing runs until another node takes the thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// Owner that has not given the thread up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ThreadOwner>,
    /// Whether a turn runs.
    #[serde(default)]
    pub running: bool,
    /// Number of open requests to clients.
    #[serde(default)]
    pub open_requests: u32,
}

/// Node that owns a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadOwner {
    /// Name of the node.
    pub node: String,
    /// Number of its ownership.
    pub epoch: Epoch,
}

impl Activity {
    fn of(thread: &Thread) -> Self {
        let owner = thread.owner.as_ref().filter(|owner| !owner.released);
        let open_requests = u32::try_from(thread.requests.len()).unwrap_or(u32::MAX);
        Self {
            owner: owner.map(|owner| ThreadOwner {
                node: owner.node.clone(),
                epoch: owner.epoch,
            }),
            running: thread.turn.is_some(),
            open_requests,
        }
    }

    fn fold(&mut self, event: &Event) {
        match event {
            Event::Owned(it) => {
                self.owner = Some(ThreadOwner {
                    node: it.node.clone(),
                    epoch: it.epoch,
                });
            }
            Event::Released {} => self.owner = None,
            Event::TurnStarted(_) => self.running = true,
            Event::TurnEnded(_) => self.running = false,
            Event::RequestOpened(_) => self.open_requests = self.open_requests.saturating_add(1),
            Event::RequestResolved(_) => self.open_requests = self.open_requests.saturating_sub(1),
            _ => {}
        }
    }
}

/// Origin of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Kind of client that started it.
    pub source: ThreadSource,
    /// Name that the client program gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// The client's own label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Version of the server that started it.
    pub version: String,
    /// Whether clients fetch its history page by page.
    #[serde(default)]
    pub paginated: bool,
    /// Last known state of the git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// Thread that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ThreadId>,
}

impl Summary {
    /// Summarises a thread; `None` before it was started or after it was deleted.
    pub fn of(thread: &Thread) -> Option<Self> {
        Self::shown(thread).filter(|_| !thread.is_deleted())
    }

    /// Whether a client has used the thread: it has a message, a name or a turn.
    pub fn is_used(&self) -> bool {
        !self.preview.is_empty() || self.name.is_some() || self.turns > 0
    }

    /// Summarises a thread, also a deleted one.
    pub(crate) fn shown(thread: &Thread) -> Option<Self> {
        let identity = thread.identity.as_ref()?;
        Some(Self {
            thread: identity.thread,
            tenant: identity.tenant.clone(),
            principal: identity.principal.clone(),
            name: thread.name.clone(),
            preview: thread.preview.clone(),
            cwd: thread.settings.cwd.clone(),
            provider: thread.settings.provider.clone(),
            model: thread.settings.model.clone(),
            effort: thread.settings.effort.clone(),
            archived: thread.archived,
            turns: thread.turns,
            created_at: identity.created_at,
            recency_at: thread.recency_at.unwrap_or(identity.created_at),
            updated_at: thread.updated_at,
            origin: Origin {
                source: identity.source.clone(),
                originator: identity.originator.clone(),
                label: identity.label.clone(),
                version: identity.version.clone(),
                paginated: identity.paginated,
                git: identity.git.clone(),
                forked_from: identity.forked_from,
            },
            activity: Activity::of(thread),
            head: thread.head,
        })
    }

    /// Returns the time by which a list is sorted.
    pub fn time(&self, order: ListOrder) -> Timestamp {
        match order {
            ListOrder::Recency => self.recency_at,
            ListOrder::Created => self.created_at,
            ListOrder::Updated => self.updated_at,
        }
    }

    /// Folds a record into a summary, for stores that keep lists without keeping threads. It agrees
    /// with [`Summary::of`] after every record.
    pub fn fold(summary: &mut Option<Self>, record: &Record) {
        let RecordBody::Event(event) = &record.body else {
            if let Some(summary) = summary {
                summary.head = record.seq;
            }
            return;
        };
        match (summary.as_mut(), &**event) {
            (_, Event::ThreadStarted(it)) => {
                let mut started = Self {
                    thread: it.thread,
                    tenant: it.tenant.clone(),
                    principal: it.principal.clone(),
                    name: None,
                    preview: String::new(),
                    cwd: String::new(),
                    provider: None,
                    model: None,
                    effort: None,
                    archived: false,
                    turns: 0,
                    created_at: record.at,
                    recency_at: record.at,
                    updated_at: record.at,
                    origin: Origin {
                        source: it.source.clone(),
                        originator: it.originator.clone(),
                        label: it.label.clone(),
                        version: it.version.clone(),
                        paginated: it.paginated,
                        git: it.git.clone(),
                        forked_from: None,
                    },
                    activity: Activity::default(),
                    head: record.seq,
                };
                started.set(&it.settings);
                *summary = Some(started);
                return;
            }
            (Some(_), Event::Deleted { .. }) => {
                *summary = None;
                return;
            }
            (None, _) => return,
            (Some(it), event) => it.change(event, record.at),
        }
        if let Some(summary) = summary {
            summary.head = record.seq;
        }
    }

    fn set(&mut self, settings: &Settings) {
        self.cwd.clone_from(&settings.cwd);
        self.provider.clone_from(&settings.provider);
        self.model.clone_from(&settings.model);
        self.effort.clone_from(&settings.effort);
    }

    fn change(&mut self, event: &Event, at: Timestamp) {
        if event.is_change() {
            self.updated_at = at;
        }
        self.activity.fold(event);
        match event {
            Event::Forked(it) if it.is_import() => {
                self.turns = it.turns;
                self.set(&it.settings);
            }
            Event::Forked(it) => {
                // A fork is as new as its own first record, whatever it copied.
                self.thread = it.thread;
                self.principal.clone_from(&it.principal);
                self.origin.forked_from = Some(it.from);
                self.created_at = at;
                self.recency_at = at;
                self.turns = it.turns;
                self.set(&it.settings);
                self.archived = false;
            }
            Event::Reverted(it) => self.turns = it.turns,
            Event::SettingsChanged(it) => self.set(&it.settings),
            Event::Renamed(_) if planted(Bug::StaleProjection) => {}
            Event::Renamed(it) => self.name.clone_from(&it.name),
            Event::MetadataChanged(it) => self.origin.git.clone_from(&it.git),
            Event::Archived { .. } => self.archived = true,
            Event::Unarchived { .. } => self.archived = false,
            Event::TurnStarted(_) => {
                self.turns += 1;
                self.recency_at = at;
            }
            Event::InputAccepted(it) if self.preview.is_empty() => {
                if let ItemBody::UserMessage(message) = &it.item.body {
                    self.preview = preview(message);
                }
            }
            _ => {}
        }
    }
}

impl Event {
    /// Whether this may change a [`Summary`] in more than its head: its time of change, or its
    /// [`Activity`].
    pub fn is_listed(&self) -> bool {
        self.is_change()
            || matches!(
                self,
                Self::Owned(_)
                    | Self::Released {}
                    | Self::RequestOpened(_)
                    | Self::RequestResolved(_)
            )
    }

    /// Whether this changes the thread as the user sees it: an action of the user, or the end of a
    /// turn. Events inside a turn and changes of ownership do not.
    pub fn is_change(&self) -> bool {
        match self {
            Self::ThreadStarted(_)
            | Self::Forked(_)
            | Self::Reverted(_)
            | Self::SettingsChanged(_)
            | Self::Renamed(_)
            | Self::MetadataChanged(_)
            | Self::Archived { .. }
            | Self::Unarchived { .. }
            | Self::Deleted { .. }
            | Self::TurnStarted(_)
            | Self::InputAccepted(_)
            | Self::TurnEnded(_) => true,
            Self::Owned(_)
            | Self::Briefed(_)
            | Self::ItemsInjected(_)
            | Self::GoalSet(_)
            | Self::GoalCleared { .. }
            | Self::InputQueued(_)
            | Self::InputUnqueued(_)
            | Self::QueueReordered(_)
            | Self::Reserved(_)
            | Self::Released {}
            | Self::ModelCalled(_)
            | Self::ModelEnded(_)
            | Self::ModelUsed(_)
            | Self::ItemStarted(_)
            | Self::ItemSaved(_)
            | Self::ToolStarted(_)
            | Self::ItemCompleted(_)
            | Self::RequestOpened(_)
            | Self::RequestResolved(_)
            | Self::PlanUpdated(_)
            | Self::DiffUpdated(_)
            | Self::Warned(_)
            | Self::InterruptAccepted(_)
            | Self::Compacted(_)
            | Self::Remembered(_) => false,
        }
    }
}

/// Maximum number of characters of the first message that lists keep.
const PREVIEW_CHARS_MAX: usize = 400;

/// Returns the beginning of a message.
pub(crate) fn preview(message: &UserMessage) -> String {
    let text = message.input.iter().find_map(|input| match input {
        Input::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    text.unwrap_or_default()
        .chars()
        .take(PREVIEW_CHARS_MAX)
        .collect()
}
