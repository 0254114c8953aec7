//! Threads as lists show them.

use serde::{Deserialize, Serialize};

use super::ListOrder;
use crate::bugs::{Bug, planted};
use crate::{
    Event, Git, Input, ItemBody, Record, RecordBody, Seq, Settings, Thread, ThreadId, ThreadSource,
    Timestamp, UserMessage,
};

/// A thread as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its id.
    pub thread: ThreadId,
    /// Its name.
    pub name: Option<String>,
    /// The first words of the user.
    pub preview: String,
    /// Its working folder.
    pub cwd: String,
    /// The provider of its model.
    pub provider: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// How hard the model thinks.
    pub effort: Option<String>,
    /// Whether it is hidden from ordinary lists.
    pub archived: bool,
    /// How many turns count.
    pub turns: u64,
    /// When it began.
    pub created_at: Timestamp,
    /// When a turn last began, or else when it was made.
    pub recency_at: Timestamp,
    /// When it last changed: see [`Event::is_change`].
    pub updated_at: Timestamp,
    /// How it came to be.
    pub origin: Origin,
    /// Its newest record.
    pub head: Seq,
}

/// How a thread came to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// What kind of client started it.
    pub source: ThreadSource,
    /// The client program's name for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// The client's own label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Version of the server that began it.
    pub version: String,
    /// Whether clients fetch its history page by page.
    #[serde(default)]
    pub paginated: bool,
    /// State of the repository as it was last noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// The thread it was copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ThreadId>,
}

impl Summary {
    /// A thread as a list shows it; nothing before it was started or after it was deleted.
    pub fn of(thread: &Thread) -> Option<Self> {
        Self::shown(thread).filter(|_| !thread.is_deleted())
    }

    /// The same also of a thread that was deleted.
    pub(crate) fn shown(thread: &Thread) -> Option<Self> {
        let identity = thread.identity.as_ref()?;
        Some(Self {
            thread: identity.thread,
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
            head: thread.head,
        })
    }

    /// The time by which a list is ordered.
    pub fn time(&self, order: ListOrder) -> Timestamp {
        match order {
            ListOrder::Recency => self.recency_at,
            ListOrder::Created => self.created_at,
            ListOrder::Updated => self.updated_at,
        }
    }

    /// Folds a record into what a list shows, for stores that keep lists without keeping threads.
    /// It agrees with [`Summary::of`] after every record.
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
        match event {
            Event::Forked(it) if it.is_import() => {
                self.turns = it.turns;
                self.set(&it.settings);
            }
            Event::Forked(it) => {
                // A fork is as new as its own first record, whatever it took over.
                self.thread = it.thread;
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
    /// Whether a list may show something else after this: what a user did, and the end of a turn. What
    /// happens inside a turn, and who owns the thread, is none of a list's business.
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

/// How much of the first words is kept for lists.
const PREVIEW_CHARS_MAX: usize = 400;

/// The first words of a message.
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
