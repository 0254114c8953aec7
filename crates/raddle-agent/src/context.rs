//! What the model reads, built from the journal when it is needed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Context, Entry, Seq, Span, ThreadId, weight};

use crate::open::PAGE_BYTES;

/// How many bytes of history are kept for the next calls, of all threads together.
const KEPT_BYTES_MAX: u64 = 64 << 20;

/// How many bytes of history are kept. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<AtomicU64>);

/// A thread's history as it was last read: the next call reads only what has come since. Whatever is not
/// kept is read again.
pub(crate) struct History {
    shelf: Shelf,
    read: Mutex<Option<Read>>,
}

/// What was read.
#[derive(Default)]
struct Read {
    lineage: Vec<Span>,
    upto: Seq,
    context: Context,
    bytes: u64,
}

impl History {
    pub(crate) fn new(shelf: Shelf) -> Self {
        Self {
            shelf,
            read: Mutex::default(),
        }
    }

    /// What was read of this lineage. Nobody else has it until it is put back.
    fn take(&self, lineage: &[Span]) -> Option<Read> {
        let read = self.swap(None)?;
        (read.lineage == lineage).then_some(read)
    }

    /// Puts back what was read, if there is room for it.
    fn keep(&self, read: Read) {
        let kept = self.shelf.0.load(Ordering::Relaxed);
        if kept.saturating_add(read.bytes) <= KEPT_BYTES_MAX {
            self.swap(Some(read));
        }
    }

    fn swap(&self, read: Option<Read>) -> Option<Read> {
        let more = read.as_ref().map_or(0, |read| read.bytes);
        let mut place = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, read);
        let less = before.as_ref().map_or(0, |read| read.bytes);
        self.shelf.0.fetch_add(more, Ordering::Relaxed);
        self.shelf.0.fetch_sub(less, Ordering::Relaxed);
        before
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.swap(None);
    }
}

/// What the model reads of a thread's lineage, up to its newest record.
pub(crate) async fn build(
    journal: &dyn Journal,
    id: ThreadId,
    lineage: &[Span],
    history: &History,
) -> Result<Vec<Entry>, ReadError> {
    let known = history.take(lineage);
    // Only the last stretch of a lineage grows.
    let new = match (&known, lineage.split_last()) {
        (Some(_), Some((last, _))) => std::slice::from_ref(last),
        _ => lineage,
    };
    let mut read = known.unwrap_or_default();
    for span in new {
        let mut after = read.upto.max(Seq(span.from.0.saturating_sub(1)));
        // Of one record not a page is read.
        let is_one = span.until == Some(span.from.next());
        let bytes_max = if is_one { 1 } else { PAGE_BYTES };
        loop {
            let page = journal.read(id, after, bytes_max).await?;
            let Some(last) = page.last() else {
                break;
            };
            after = last.seq;
            for record in page.iter().filter(|record| span.holds(record.seq)) {
                read.context.apply(record);
                read.bytes += weight(&record.body);
                read.upto = record.seq;
            }
            if span.until.is_some_and(|until| after.next() >= until) {
                break;
            }
        }
    }
    let entries = read.context.entries();
    read.lineage = lineage.to_vec();
    history.keep(read);
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(from: u64, bytes: u64) -> Read {
        Read {
            lineage: lineage(from),
            bytes,
            ..Read::default()
        }
    }

    fn lineage(from: u64) -> Vec<Span> {
        vec![Span {
            from: Seq(from),
            until: None,
        }]
    }

    #[test]
    fn only_what_was_read_of_the_same_lineage_is_gone_on_from() {
        let history = History::new(Shelf::default());
        history.keep(read(1, 10));
        assert!(history.take(&lineage(2)).is_none());
        assert!(history.take(&lineage(1)).is_none());
        history.keep(read(1, 10));
        assert!(history.take(&lineage(1)).is_some());
    }

    #[test]
    fn all_threads_together_keep_no_more_than_the_shelf_holds() {
        let shelf = Shelf::default();
        let kept = || shelf.0.load(Ordering::Relaxed);
        let [first, second] = [(); 2].map(|()| History::new(shelf.clone()));
        first.keep(read(1, KEPT_BYTES_MAX - 10));
        second.keep(read(1, 11));
        assert!(second.take(&lineage(1)).is_none());
        second.keep(read(1, 10));
        assert_eq!(kept(), KEPT_BYTES_MAX);
        drop(first);
        assert_eq!(kept(), 10);
        drop(second);
        assert_eq!(kept(), 0);
    }
}
