//! Cursors of pages, as text that clients hand back.

use raddle_core::ports::{Page, ReadError, Summary};
use raddle_core::{Seq, ThreadId, Timestamp};

/// The largest page. A caller that asks for more gets this many.
pub(crate) const LIMIT_MAX: usize = 1000;

/// A text with fewer letters than this is not searched for.
pub(crate) const LETTERS_MIN: usize = 3;

/// Of a longer text, so many letters are searched for.
const LETTERS_MAX: usize = 256;

/// What is searched for when a text is asked for; nothing if that is found nowhere.
pub(crate) fn sought(text: &str) -> Option<String> {
    let sought: String = text.chars().take(LETTERS_MAX).collect();
    let found = sought.chars().nth(LETTERS_MIN - 1).is_some() && !sought.contains('\0');
    found.then_some(sought)
}

/// How many entries a page has.
pub(crate) fn limit(asked: usize) -> usize {
    asked.clamp(1, LIMIT_MAX)
}

/// Where a list of threads goes on: after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListCursor {
    pub(crate) recency: Timestamp,
    pub(crate) thread: ThreadId,
}

impl ListCursor {
    pub(crate) fn of(summary: &Summary) -> Self {
        Self {
            recency: summary.recency_at,
            thread: summary.thread,
        }
    }

    pub(crate) fn parse(text: Option<&str>) -> Result<Option<Self>, ReadError> {
        let Some(text) = text else { return Ok(None) };
        let parsed = text.split_once('.').and_then(|(recency, thread)| {
            Some(Self {
                recency: Timestamp(recency.parse().ok()?),
                thread: thread.parse().ok()?,
            })
        });
        parsed.map(Some).ok_or(ReadError::BadCursor)
    }

    pub(crate) fn text(self) -> String {
        format!("{}.{}", self.recency.0, self.thread)
    }
}

/// Where a thread's turns or items go on: after this record.
pub(crate) fn seq_cursor(text: Option<&str>) -> Result<Option<Seq>, ReadError> {
    let Some(text) = text else { return Ok(None) };
    let seq = text.parse().map_err(|_| ReadError::BadCursor)?;
    Ok(Some(Seq(seq)))
}

/// A page of threads from one more than fit on it, if there were more.
pub(crate) fn of_threads(mut entries: Vec<Summary>, limit: usize) -> Page<Summary> {
    let more = entries.len() > limit;
    entries.truncate(limit);
    let last = entries.last().filter(|_| more);
    let next = last.map(|summary| ListCursor::of(summary).text());
    Page { entries, next }
}

/// A page of numbered things from one more than fit on it, if there were more.
pub(crate) fn of_numbered<T>(mut entries: Vec<(Seq, T)>, limit: usize) -> Page<T> {
    let more = entries.len() > limit;
    entries.truncate(limit);
    let last = entries.last().filter(|_| more);
    let next = last.map(|(seq, _)| seq.to_string());
    Page {
        entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        next,
    }
}
