//! What the model reads, built from the journal when it is needed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raddle_core::ports::{Journal, ReadError};
use raddle_core::{
    Context, ContextEntry, Record, RecordBody, Seq, SharedEntry, Span, ThreadId, weight,
};

use crate::open::PAGE_BYTES;

/// How many bytes of history are kept for the next calls, of all threads together.
const HISTORY_BYTES_MAX: u64 = 64 << 20;

/// How many bytes of history are kept. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct HistoryBudget(Arc<AtomicU64>);

/// A thread's history as it was last read, and as it went on: what its own task stores is taken in as it is
/// stored. Whatever is not kept is read again.
pub(crate) struct History {
    budget: HistoryBudget,
    cached: Mutex<Option<CachedHistory>>,
}

/// What was read.
#[derive(Default)]
struct CachedHistory {
    lineage: Vec<Span>,
    upto: Seq,
    context: Context,
    bytes: u64,
}

impl CachedHistory {
    /// Takes in the next record of the thread, if it belongs to this lineage.
    fn take_in(&mut self, lineage: &[Span], record: &Record) {
        if lineage.iter().any(|span| span.holds(record.seq)) {
            self.context.apply(record);
            if let RecordBody::Event(_) = record.body {
                // Once as it is, and once as a model is told of it.
                self.bytes += 2 * weight(&record.body);
            }
        }
        self.upto = record.seq;
    }
}

impl History {
    pub(crate) fn new(budget: HistoryBudget) -> Self {
        Self {
            budget,
            cached: Mutex::default(),
        }
    }

    /// That of a thread of which nothing is stored yet.
    pub(crate) fn of_new(shelf: HistoryBudget) -> Self {
        let history = Self::new(shelf);
        history.keep(CachedHistory::default());
        history
    }

    /// This was stored after a record. It is taken in if everything up to that one was.
    pub(crate) fn follow(&self, lineage: &[Span], after: Seq, records: &[Record]) {
        let Some(mut read) = self.swap(None) else {
            return;
        };
        if after == Seq::ZERO {
            read.lineage = lineage.to_vec();
        }
        if read.lineage == lineage && read.upto >= after {
            // Whoever read since it was stored has some of it already.
            let upto = read.upto;
            for record in records.iter().filter(|record| record.seq > upto) {
                read.take_in(lineage, record);
            }
        }
        self.keep(read);
    }

    /// What was read of this lineage. Nobody else has it until it is put back.
    fn take(&self, lineage: &[Span]) -> Option<CachedHistory> {
        let read = self.swap(None)?;
        (read.lineage == lineage).then_some(read)
    }

    /// Puts back what was read, if there is room for it.
    fn keep(&self, read: CachedHistory) {
        let kept = self.budget.0.load(Ordering::Relaxed);
        if kept.saturating_add(read.bytes) <= HISTORY_BYTES_MAX {
            self.swap(Some(read));
        }
    }

    fn swap(&self, read: Option<CachedHistory>) -> Option<CachedHistory> {
        let more = read.as_ref().map_or(0, |read| read.bytes);
        let mut place = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, read);
        let less = before.as_ref().map_or(0, |read| read.bytes);
        self.budget.0.fetch_add(more, Ordering::Relaxed);
        self.budget.0.fetch_sub(less, Ordering::Relaxed);
        before
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.swap(None);
    }
}

/// What the model reads of a thread's lineage, at least up to its head.
pub(crate) async fn build(
    journal: &dyn Journal,
    id: ThreadId,
    lineage: &[Span],
    head: Seq,
    history: &History,
) -> Result<Vec<SharedEntry>, ReadError> {
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
        while after < head {
            let page = journal.read(id, after, bytes_max).await?;
            let Some(last) = page.last() else {
                break;
            };
            after = last.seq;
            for record in page.iter().filter(|record| span.holds(record.seq)) {
                read.take_in(std::slice::from_ref(span), record);
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

/// Leaves out the older part of a history, as often halved as is said. What is left begins with something that
/// was said, every output in it has its call, and the user's newest words are in it whatever their length.
pub(crate) fn shorten(entries: &mut Vec<SharedEntry>, halvings: u32) {
    if halvings == 0 {
        return;
    }
    let weights: Vec<usize> = entries.iter().map(|it| heft(it)).collect();
    let mut left = weights.iter().sum::<usize>() >> halvings.min(usize::BITS - 1);
    let mut first = entries.len();
    while first > 0 && weights[first - 1] <= left {
        first -= 1;
        left -= weights[first];
    }
    let wish = entries
        .iter()
        .rposition(|it| matches!(**it, ContextEntry::User(_)));
    let wish = wish.filter(|at| *at < first).map(|at| entries[at].clone());
    entries.drain(..first);
    let mut called: Vec<String> = Vec::new();
    entries.retain(|it| match &**it {
        ContextEntry::Call(call) => {
            called.push(call.id.clone());
            true
        }
        ContextEntry::Output { call, .. } => called.contains(call),
        _ => true,
    });
    let note = "The older part of the history is left out here, because it is too long to be read.";
    let note = SharedEntry::from(ContextEntry::Note(note.to_owned()));
    entries.splice(..0, [note].into_iter().chain(wish));
}

/// How long an entry is to be read, about.
fn heft(entry: &ContextEntry) -> usize {
    match entry {
        ContextEntry::Summary(text) | ContextEntry::Note(text) | ContextEntry::Developer(text) => {
            text.len()
        }
        ContextEntry::User(input) => input.iter().map(|it| format!("{it:?}").len()).sum(),
        ContextEntry::Assistant { text, .. } => text.len(),
        ContextEntry::Reasoning(sealed) => sealed.value.to_string().len(),
        ContextEntry::Call(call) => call.arguments.len(),
        ContextEntry::Output { output, .. } => output.text.len(),
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::{Briefed, Event, Input, Output, Timestamp, Topic};

    use super::*;

    fn read(from: u64, bytes: u64) -> CachedHistory {
        CachedHistory {
            lineage: lineage(from),
            bytes,
            ..CachedHistory::default()
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
        let history = History::new(HistoryBudget::default());
        history.keep(read(1, 10));
        assert!(history.take(&lineage(2)).is_none());
        assert!(history.take(&lineage(1)).is_none());
        history.keep(read(1, 10));
        assert!(history.take(&lineage(1)).is_some());
    }

    /// Records with these numbers, each of which the model reads.
    fn notes(numbers: std::ops::Range<u64>) -> Vec<Record> {
        let note = |number| {
            let brief = Briefed {
                topic: Topic::Environment,
                text: format!("{number}"),
                sources: Vec::new(),
            };
            Record {
                seq: Seq(number),
                at: Timestamp(1),
                body: Event::Briefed(brief).into(),
            }
        };
        numbers.map(note).collect()
    }

    #[test]
    fn what_is_stored_is_taken_in_once_and_without_a_gap() {
        for (stored, wanted) in [
            (vec![(0, 1..3), (2, 3..5)], "1 2 3 4"),
            // Whoever called the model has read some of it since.
            (vec![(0, 1..3), (1, 2..5)], "1 2 3 4"),
            // Something between was stored by who knows whom.
            (vec![(0, 1..3), (3, 4..5)], "1 2"),
        ] {
            let history = History::of_new(HistoryBudget::default());
            for (after, numbers) in stored.clone() {
                history.follow(&lineage(1), Seq(after), &notes(numbers));
            }
            let read = history.take(&lineage(1)).expect("a history");
            let found = read.context.entries();
            let found = found.iter().map(|piece| match &**piece {
                ContextEntry::Note(text) => text.as_str(),
                other => panic!("{other:?}"),
            });
            let found: Vec<&str> = found.collect();
            assert_eq!(found.join(" "), wanted, "{stored:?}");
        }
    }

    #[test]
    fn nothing_is_taken_in_where_nothing_was_read() {
        let history = History::new(HistoryBudget::default());
        history.follow(&lineage(1), Seq(4), &notes(5..6));
        assert!(history.take(&lineage(1)).is_none());
        let history = History::of_new(HistoryBudget::default());
        history.follow(&lineage(1), Seq(4), &notes(5..6));
        assert!(history.take(&lineage(1)).is_none());
    }

    #[test]
    fn a_history_that_is_too_long_is_shortened_from_its_beginning() {
        let user = |text: &str| ContextEntry::User(vec![Input::text(text)]);
        let output = |call: &str| ContextEntry::Output {
            call: call.to_owned(),
            output: Output::text("x".repeat(100)),
        };
        let call = |id: &str| {
            ContextEntry::Call(raddle_core::ToolCall {
                id: id.to_owned(),
                tool: "t".to_owned(),
                arguments: "y".repeat(100),
                freeform: false,
                alone: false,
            })
        };
        let history = || {
            let entries = [
                user("a"),
                call("1"),
                output("1"),
                user("b"),
                call("2"),
                output("2"),
            ];
            entries
                .into_iter()
                .map(SharedEntry::from)
                .collect::<Vec<_>>()
        };
        let kinds = |entries: &[SharedEntry]| -> String {
            let kind = |it: &SharedEntry| match &**it {
                ContextEntry::User(_) => 'u',
                ContextEntry::Call(_) => 'c',
                ContextEntry::Output { .. } => 'o',
                ContextEntry::Note(_) => 'n',
                _ => '?',
            };
            entries.iter().map(kind).collect()
        };
        for (halvings, wanted) in [(0, "ucouco"), (1, "nuco"), (2, "nu"), (31, "nu")] {
            let mut entries = history();
            shorten(&mut entries, halvings);
            assert_eq!(kinds(&entries), wanted, "{halvings}");
        }
    }

    #[test]
    fn all_threads_together_keep_no_more_than_the_shelf_holds() {
        let shelf = HistoryBudget::default();
        let kept = || shelf.0.load(Ordering::Relaxed);
        let [first, second] = [(); 2].map(|()| History::new(shelf.clone()));
        first.keep(read(1, HISTORY_BYTES_MAX - 10));
        second.keep(read(1, 11));
        assert!(second.take(&lineage(1)).is_none());
        second.keep(read(1, 10));
        assert_eq!(kept(), HISTORY_BYTES_MAX);
        drop(first);
        assert_eq!(kept(), 10);
        drop(second);
        assert_eq!(kept(), 0);
    }
}
