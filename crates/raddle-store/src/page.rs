//! Cursors of pages, as opaque text for clients.

use raddle_core::ports::{
    ItemEntry, ListOrder, ListQuery, Page, PageCursor, ReadError, Summary, TurnEntry,
};
use raddle_core::{Seq, ThreadId, Timestamp};

/// Maximum number of entries on a page. Higher requests are clamped.
pub(crate) const LIMIT_MAX: usize = 1000;

/// Limit: items on one page, with at most 100 (a single item may be larger); beyond it, the page
/// ends early, and its cursor continues.
pub(crate) const ITEMS_BYTES_MAX: usize = 8 << 20;

/// Minimum number of characters of a search text.
pub(crate) const CHARS_MIN: usize = 3;

/// Limit: characters of a search text; beyond it, the rest is ignored.
const CHARS_MAX: usize = 256;

/// Returns the text to search for, or `None` if the text cannot match anything.
pub(crate) fn search_text(text: &str) -> Option<String> {
    let needle: String = text.chars().take(CHARS_MAX).collect();
    let searchable = needle.chars().nth(CHARS_MIN - 1).is_some() && !needle.contains('\0');
    searchable.then_some(needle)
}

/// Returns the number of entries of a page.
pub(crate) fn limit(requested: usize) -> usize {
    requested.clamp(1, LIMIT_MAX)
}

/// Sort key of a thread in a list.
pub(crate) type ListKey = (Timestamp, ThreadId);

/// Returns the sort key of a thread in a list.
pub(crate) fn list_key(summary: &Summary, order: ListOrder) -> ListKey {
    (summary.time(order), summary.thread)
}

/// Cursor of a list of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListCursor {
    pub(crate) key: ListKey,
    /// Whether the page includes the thread with that key.
    pub(crate) included: bool,
}

impl ListCursor {
    pub(crate) fn parse(query: &ListQuery) -> Result<Option<Self>, ReadError> {
        let Some(text) = &query.cursor else {
            return Ok(None);
        };
        let rest = text.strip_prefix('=');
        let key = rest.unwrap_or(text).strip_prefix(sign(query.order));
        let parsed = key.and_then(|key| key.split_once('.'));
        let parsed = parsed.and_then(|(time, thread)| {
            Some(Self {
                key: (Timestamp(time.parse().ok()?), thread.parse().ok()?),
                included: rest.is_some(),
            })
        });
        parsed.map(Some).ok_or(ReadError::BadCursor)
    }

    /// Whether a thread belongs on the pages from this cursor on.
    pub(crate) fn leads_to(&self, key: ListKey, oldest_first: bool) -> bool {
        let further = if oldest_first {
            key > self.key
        } else {
            key < self.key
        };
        further || (self.included && key == self.key)
    }

    pub(crate) fn text(self, order: ListOrder) -> String {
        let included = if self.included { "=" } else { "" };
        let (time, thread) = self.key;
        format!("{included}{}{}.{thread}", sign(order), time.0)
    }
}

/// Returns the prefix that distinguishes cursors of different orders.
fn sign(order: ListOrder) -> char {
    match order {
        ListOrder::Recency => 'r',
        ListOrder::Created => 'c',
        ListOrder::Updated => 'u',
    }
}

/// Sorts threads in the order of a list, and truncates them to one page and one more entry.
pub(crate) fn arrange(threads: &mut Vec<Summary>, query: &ListQuery) {
    threads.sort_by_key(|it| list_key(it, query.order));
    if !query.oldest_first {
        threads.reverse();
    }
    threads.truncate(limit(query.limit) + 1);
}

/// Builds a page of threads. One entry more than the limit means that there are more.
pub(crate) fn of_threads(mut entries: Vec<Summary>, query: &ListQuery) -> Page<Summary> {
    let limit = limit(query.limit);
    let more = entries.len() > limit;
    entries.truncate(limit);
    let cursor = |it: &Summary, included| {
        let key = list_key(it, query.order);
        ListCursor { key, included }.text(query.order)
    };
    Page {
        next: entries.last().filter(|_| more).map(|it| cursor(it, false)),
        back: entries.first().map(|it| cursor(it, true)),
        entries,
    }
}

/// Parses a cursor of turns or items.
pub(crate) fn parse_cursor(text: Option<&str>) -> Result<Option<PageCursor>, ReadError> {
    text.map(str::parse).transpose()
}

/// Entry with a record number.
pub(crate) trait HasSeq {
    fn seq(&self) -> Seq;
}

impl HasSeq for TurnEntry {
    fn seq(&self) -> Seq {
        self.from
    }
}

impl HasSeq for ItemEntry {
    fn seq(&self) -> Seq {
        self.seq
    }
}

/// Builds a page of turns or items.
pub(crate) fn of_numbered<T: HasSeq>(entries: Vec<T>, more: bool) -> Page<T> {
    let cursor = |it: &T, included| {
        let seq = it.seq();
        PageCursor { seq, included }.to_string()
    };
    Page {
        next: entries.last().filter(|_| more).map(|it| cursor(it, false)),
        back: entries.first().map(|it| cursor(it, true)),
        entries,
    }
}
