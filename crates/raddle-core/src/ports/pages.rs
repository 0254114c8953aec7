//! Queries for lists and pages, and their entries.

use std::fmt;
use std::str::FromStr;

use super::{ReadError, Summary};
use crate::{Item, Seq, ThreadId, ThreadSource, Timestamp, TurnEnd, TurnId};

/// Query for threads. A thread must pass every filter; an empty filter passes all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Owners of the threads. A store lists no thread outside of it.
    pub scope: ListScope,
    /// Lists archived threads instead of the others.
    pub archived: bool,
    /// Only threads of these working folders.
    pub cwds: Vec<String>,
    /// Only threads of these providers.
    pub providers: Vec<String>,
    /// Only threads that these kinds of client started. `Some` of an empty list matches none.
    pub sources: Option<Vec<ThreadSource>>,
    /// Only threads that client programs of these names started.
    pub originators: Vec<String>,
    /// Only threads that were used: those with a message, a name or a turn.
    pub used: bool,
    /// Only threads with this text in their name or preview, ignoring case.
    pub title: Option<String>,
    /// Threads to leave out.
    pub except: Vec<ThreadId>,
    /// Time by which to sort.
    pub order: ListOrder,
    /// Whether the oldest come first.
    pub oldest_first: bool,
    /// Cursor from another page of the same order.
    pub cursor: Option<String>,
    /// Maximum number of entries on the page.
    pub limit: usize,
}

/// Tenant and principal whose threads a list or a search returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListScope {
    /// Tenant of the threads; `None` is the one of threads that name none.
    pub tenant: Option<String>,
    /// Only threads that this principal started; `None` for those of all principals.
    pub principal: Option<String>,
}

impl ListScope {
    /// Whether a thread belongs to the scope.
    pub fn holds(&self, it: &Summary) -> bool {
        self.tenant == it.tenant
            && (self.principal.as_ref()).is_none_or(|only| it.principal.as_ref() == Some(only))
    }
}

/// Time by which a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// Start of the newest turn.
    #[default]
    Recency,
    /// Start of the thread.
    Created,
    /// Last change of the thread.
    Updated,
}

impl ListQuery {
    /// Whether a thread passes the filters.
    pub fn matches(&self, it: &Summary) -> bool {
        let any = |allowed: &[String], value: Option<&String>| {
            allowed.is_empty() || value.is_some_and(|value| allowed.contains(value))
        };
        self.scope.holds(it)
            && it.archived == self.archived
            && any(&self.cwds, Some(&it.cwd))
            && any(&self.providers, it.provider.as_ref())
            && any(&self.originators, it.origin.originator.as_ref())
            && (self.sources.as_ref()).is_none_or(|allowed| allowed.contains(&it.origin.source))
            && !self.except.contains(&it.thread)
            && (!self.used || it.is_used())
            && self.matches_title(it.name.as_deref(), &it.preview)
    }

    /// Whether a thread with this name and preview passes the title filter.
    pub fn matches_title(&self, name: Option<&str>, preview: &str) -> bool {
        self.title.as_ref().is_none_or(|text| {
            let mut texts = name.into_iter().chain([preview]);
            texts.any(|title| holds(title, text))
        })
    }
}

/// Whether a text contains another, ignoring case. For ASCII text only ASCII case is ignored, as
/// databases do.
fn holds(haystack: &str, text: &str) -> bool {
    if text.is_ascii() {
        let haystack = haystack.to_ascii_lowercase();
        return haystack.contains(&text.to_ascii_lowercase());
    }
    haystack.to_lowercase().contains(&text.to_lowercase())
}

/// Query for a page of a thread's turns or items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// Position to continue from: a [`PageCursor`] as text.
    pub cursor: Option<String>,
    /// Maximum number of entries on the page.
    pub limit: usize,
    /// Whether the newest come first.
    pub newest_first: bool,
}

/// A position among a thread's turns or items, from which a page continues in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// Number of a record.
    pub seq: Seq,
    /// Whether the entry of that record is on the page.
    pub included: bool,
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.included { "=" } else { "" };
        write!(f, "{sign}{}", self.seq)
    }
}

impl FromStr for PageCursor {
    type Err = ReadError;

    fn from_str(text: &str) -> Result<Self, ReadError> {
        let rest = text.strip_prefix('=');
        let number = rest.unwrap_or(text).parse();
        Ok(Self {
            seq: Seq(number.map_err(|_| ReadError::BadCursor)?),
            included: rest.is_some(),
        })
    }
}

/// A turn on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEntry {
    /// Id of the turn.
    pub turn: TurnId,
    /// Turn that this one descends from; `None` means itself.
    pub root: Option<TurnId>,
    /// Number of its first record.
    pub from: Seq,
    /// Time at which it began.
    pub started_at: Timestamp,
    /// End of the turn and its time; `None` while it runs.
    pub ended: Option<(TurnEnd, Timestamp)>,
}

/// An item on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemEntry {
    /// Turn that the item belongs to.
    pub turn: TurnId,
    /// Number of the record that added it.
    pub seq: Seq,
    /// The completed item itself.
    pub item: Item,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// Entries on the page, in order.
    pub entries: Vec<T>,
    /// Cursor of the next page; `None` after the last.
    pub next: Option<String>,
    /// Cursor for the opposite direction, which returns the first entry again; `None` for an empty
    /// page.
    pub back: Option<String>,
}

impl<T> Page<T> {
    /// Creates a page without entries.
    pub fn empty() -> Self {
        Self {
            entries: Vec::new(),
            next: None,
            back: None,
        }
    }
}
