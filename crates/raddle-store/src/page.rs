//! Cursors of pages, as text that clients hand back.

use raddle_core::ports::{
    ItemEntry, ListOrder, ListQuery, Page, PageCursor, ReadError, Summary, TurnEntry,
};
use raddle_core::{Seq, ThreadId, Timestamp};

/// The largest page. A caller that asks for more gets this many.
pub(crate) const LIMIT_MAX: usize = 1000;

/// A page of items with this many bytes of records gets no further one.
pub(crate) const ITEMS_BYTES_MAX: usize = 8 << 20;

/// A text with fewer letters than this is not searched for.
pub(crate) const LETTERS_MIN: usize = 3;

/// Of a longer text, so many letters are searched for.
const LETTERS_MAX: usize = 256;

/// What is searched for when a text is asked for; nothing if that is found nowhere.
pub(crate) fn search_text(text: &str) -> Option<String> {
    let sought: String = text.chars().take(LETTERS_MAX).collect();
    let found = sought.chars().nth(LETTERS_MIN - 1).is_some() && !sought.contains('\0');
    found.then_some(sought)
}

/// How many entries a page has.
pub(crate) fn limit(asked: usize) -> usize {
    asked.clamp(1, LIMIT_MAX)
}

/// A thread's place in a list.
pub(crate) type ListKey = (Timestamp, ThreadId);

/// Where a thread stands in a list of an order.
pub(crate) fn list_key(summary: &Summary, order: ListOrder) -> ListKey {
    (summary.time(order), summary.thread)
}

/// Where a list of threads goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListCursor {
    pub(crate) key: ListKey,
    /// Whether the thread that stands there is on the page.
    pub(crate) included: bool,
}

impl ListCursor {
    pub(crate) fn parse(query: &ListQuery) -> Result<Option<Self>, ReadError> {
        let Some(text) = &query.cursor else {
            return Ok(None);
        };
        let rest = text.strip_prefix('=');
        let place = rest.unwrap_or(text).strip_prefix(sign(query.order));
        let parsed = place.and_then(|place| place.split_once('.'));
        let parsed = parsed.and_then(|(time, thread)| {
            Some(Self {
                key: (Timestamp(time.parse().ok()?), thread.parse().ok()?),
                included: rest.is_some(),
            })
        });
        parsed.map(Some).ok_or(ReadError::BadCursor)
    }

    /// Whether a thread comes on a page that goes on from here.
    pub(crate) fn leads_to(&self, place: ListKey, oldest_first: bool) -> bool {
        let further = if oldest_first {
            place > self.key
        } else {
            place < self.key
        };
        further || (self.included && place == self.key)
    }

    pub(crate) fn text(self, order: ListOrder) -> String {
        let included = if self.included { "=" } else { "" };
        let (time, thread) = self.key;
        format!("{included}{}{}.{thread}", sign(order), time.0)
    }
}

/// What tells a cursor of one order from that of another.
fn sign(order: ListOrder) -> char {
    match order {
        ListOrder::Recency => 'r',
        ListOrder::Created => 'c',
        ListOrder::Updated => 'u',
    }
}

/// Puts threads in the order of a list, and leaves as many as fit on a page and one more.
pub(crate) fn arrange(threads: &mut Vec<Summary>, query: &ListQuery) {
    threads.sort_by_key(|it| list_key(it, query.order));
    if !query.oldest_first {
        threads.reverse();
    }
    threads.truncate(limit(query.limit) + 1);
}

/// A page of threads from one more than fit on it, if there were more.
pub(crate) fn of_threads(mut entries: Vec<Summary>, query: &ListQuery) -> Page<Summary> {
    let limit = limit(query.limit);
    let more = entries.len() > limit;
    entries.truncate(limit);
    let cursor = |it: &Summary, included| {
        let place = list_key(it, query.order);
        ListCursor {
            key: place,
            included,
        }
        .text(query.order)
    };
    Page {
        next: entries.last().filter(|_| more).map(|it| cursor(it, false)),
        back: entries.first().map(|it| cursor(it, true)),
        entries,
    }
}

/// Where a thread's turns or items go on.
pub(crate) fn mark(text: Option<&str>) -> Result<Option<PageCursor>, ReadError> {
    text.map(str::parse).transpose()
}

/// What stands at a record.
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

/// A page of turns or items, after which there are more or not.
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
