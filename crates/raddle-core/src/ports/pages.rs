//! What lists and pages are asked for, and what is on them.

use std::fmt;
use std::str::FromStr;

use super::{ReadError, Summary};
use crate::{Item, Seq, ThreadId, ThreadSource, Timestamp, TurnEnd, TurnId};

/// Which threads to list. A thread must pass every filter; an empty one lets all pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Archived ones instead of the others.
    pub archived: bool,
    /// Only those of these working folders.
    pub cwds: Vec<String>,
    /// Only those of these providers.
    pub providers: Vec<String>,
    /// Only those that these kinds of client started. If it is there and empty, there are none.
    pub sources: Option<Vec<ThreadSource>>,
    /// Only those that client programs of these names started.
    pub originators: Vec<String>,
    /// Only those with this text in their name or first words, in whatever case.
    pub title: Option<String>,
    /// Not these.
    pub except: Vec<ThreadId>,
    /// By what they are ordered.
    pub order: ListOrder,
    /// Whether the oldest come first.
    pub oldest_first: bool,
    /// Where to go on, from another page of the same order.
    pub cursor: Option<String>,
    /// How many.
    pub limit: usize,
}

/// By what time a list is ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// When a turn last began.
    #[default]
    Recency,
    /// When the thread began.
    Created,
    /// When the thread last changed.
    Updated,
}

impl ListQuery {
    /// Whether a thread passes the filters.
    pub fn matches(&self, it: &Summary) -> bool {
        let any = |wanted: &[String], is: Option<&String>| {
            wanted.is_empty() || is.is_some_and(|is| wanted.contains(is))
        };
        it.archived == self.archived
            && any(&self.cwds, Some(&it.cwd))
            && any(&self.providers, it.provider.as_ref())
            && any(&self.originators, it.origin.originator.as_ref())
            && (self.sources.as_ref()).is_none_or(|wanted| wanted.contains(&it.origin.source))
            && !self.except.contains(&it.thread)
            && self.matches_title(it.name.as_deref(), &it.preview)
    }

    /// Whether a thread of this name and with these first words passes the filter by them.
    pub fn matches_title(&self, name: Option<&str>, preview: &str) -> bool {
        self.title.as_ref().is_none_or(|text| {
            let mut words = name.into_iter().chain([preview]);
            words.any(|words| holds(words, text))
        })
    }
}

/// Whether words hold a text, in whatever case. For a text in ASCII that is ASCII's, which a database knows too.
fn holds(words: &str, text: &str) -> bool {
    if text.is_ascii() {
        let words = words.to_ascii_lowercase();
        return words.contains(&text.to_ascii_lowercase());
    }
    words.to_lowercase().contains(&text.to_lowercase())
}

/// Which page of a thread's turns or items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// Where to go on: a [`Mark`] as text.
    pub cursor: Option<String>,
    /// How many.
    pub limit: usize,
    /// Whether the newest come first.
    pub newest_first: bool,
}

/// A place among a thread's turns or items, from which a page goes on in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCursor {
    /// A record.
    pub seq: Seq,
    /// Whether what it brought is on the page.
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

/// A turn as a page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEntry {
    /// Its id.
    pub turn: TurnId,
    /// The turn it goes back to; itself if nothing is said.
    pub root: Option<TurnId>,
    /// Its first record.
    pub from: Seq,
    /// When it began.
    pub started_at: Timestamp,
    /// How and when it ended; nothing while it runs.
    pub ended: Option<(TurnEnd, Timestamp)>,
}

/// An item as a page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemEntry {
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The record that brought it.
    pub seq: Seq,
    /// The item.
    pub item: Item,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it.
    pub entries: Vec<T>,
    /// Where the next one begins; nothing after the last.
    pub next: Option<String>,
    /// Where to go on in the other direction, so that its first entry comes again; nothing if it has none.
    pub back: Option<String>,
}

impl<T> Page<T> {
    /// A page with nothing on it.
    pub fn empty() -> Self {
        Self {
            entries: Vec::new(),
            next: None,
            back: None,
        }
    }
}
