//! The model's context, built from the journal on demand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use raddle_core::ports::{Journal, ReadError};
use raddle_core::{
    Context, ContextEntry, Record, RecordBody, Seq, SharedEntry, Span, ThreadId, weight,
};

use crate::open::PAGE_BYTES;

/// Limit: history cached for further model calls, of all threads; beyond it, the history is read
/// from the journal again.
const HISTORY_BYTES_MAX: u64 = 64 << 20;

/// Bytes of cached history of all threads. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct HistoryBudget(Arc<AtomicU64>);

/// Cache of a thread's history. The thread's own task adds records as it stores them. Anything that
/// is not cached is read again.
pub(crate) struct History {
    budget: HistoryBudget,
    cached: Mutex<Option<CachedHistory>>,
}

/// The cached part of a history.
#[derive(Default)]
struct CachedHistory {
    lineage: Vec<Span>,
    upto: Seq,
    context: Context,
    bytes: u64,
}

impl CachedHistory {
    /// Applies the next record of the thread, if it belongs to this lineage.
    fn apply(&mut self, lineage: &[Span], record: &Record) {
        if lineage.iter().any(|span| span.holds(record.seq)) {
            self.context.apply(record);
            if let RecordBody::Event(_) = record.body {
                // Once as a record, and once as the entry for the model.
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

    /// Creates the history of a thread without stored records.
    pub(crate) fn of_new(budget: HistoryBudget) -> Self {
        let history = Self::new(budget);
        history.keep(CachedHistory::default());
        history
    }

    /// Adds records that were stored after `after`, if everything up to that record is cached.
    pub(crate) fn follow(&self, lineage: &[Span], after: Seq, records: &[Record]) {
        let Some(mut read) = self.swap(None) else {
            return;
        };
        if after == Seq::ZERO {
            read.lineage = lineage.to_vec();
        }
        if read.lineage == lineage && read.upto >= after {
            // A reader since then may have applied some of them.
            let upto = read.upto;
            for record in records.iter().filter(|record| record.seq > upto) {
                read.apply(lineage, record);
            }
        }
        self.keep(read);
    }

    /// Takes the cached history of this lineage out of the cache, until it is put back.
    fn take(&self, lineage: &[Span]) -> Option<CachedHistory> {
        let read = self.swap(None)?;
        (read.lineage == lineage).then_some(read)
    }

    /// Puts the history back, if the budget allows it.
    fn keep(&self, read: CachedHistory) {
        let used = self.budget.0.load(Ordering::Relaxed);
        if used.saturating_add(read.bytes) <= HISTORY_BYTES_MAX {
            self.swap(Some(read));
        }
    }

    fn swap(&self, read: Option<CachedHistory>) -> Option<CachedHistory> {
        let more = read.as_ref().map_or(0, |read| read.bytes);
        let mut slot = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = std::mem::replace(&mut *slot, read);
        let less = previous.as_ref().map_or(0, |read| read.bytes);
        self.budget.0.fetch_add(more, Ordering::Relaxed);
        self.budget.0.fetch_sub(less, Ordering::Relaxed);
        previous
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.swap(None);
    }
}

/// Builds the model's context of a thread's lineage, at least up to its head.
pub(crate) async fn build(
    journal: &dyn Journal,
    id: ThreadId,
    lineage: &[Span],
    head: Seq,
    history: &History,
) -> Result<Vec<SharedEntry>, ReadError> {
    let known = history.take(lineage);
    // Only the last span of a lineage grows.
    let new = match (&known, lineage.split_last()) {
        (Some(_), Some((last, _))) => std::slice::from_ref(last),
        _ => lineage,
    };
    let mut read = known.unwrap_or_default();
    for span in new {
        let mut after = read.upto.max(Seq(span.from.0.saturating_sub(1)));
        // A span of one record needs no whole page.
        let is_one = span.until == Some(span.from.next());
        let bytes_max = if is_one { 1 } else { PAGE_BYTES };
        while after < head {
            let page = journal.read(id, after, bytes_max).await?;
            let Some(last) = page.last() else {
                break;
            };
            after = last.seq;
            for record in page.iter().filter(|record| span.holds(record.seq)) {
                read.apply(std::slice::from_ref(span), record);
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

/// Drops the older part of a history: each halving halves the rest. Every output that is left has
/// its call. The user's newest message is always kept, whatever its length.
pub(crate) fn shorten(entries: &mut Vec<SharedEntry>, halvings: u32) {
    if halvings == 0 {
        return;
    }
    let weights: Vec<usize> = entries.iter().map(|it| approximate_len(it)).collect();
    let mut remaining = weights.iter().sum::<usize>() >> halvings.min(usize::BITS - 1);
    let mut first = entries.len();
    while first > 0 && weights[first - 1] <= remaining {
        first -= 1;
        remaining -= weights[first];
    }
    let user_message = entries
        .iter()
        .rposition(|it| matches!(**it, ContextEntry::User(_)));
    let user_message = user_message
        .filter(|at| *at < first)
        .map(|at| entries[at].clone());
    entries.drain(..first);
    let mut call_ids: Vec<String> = Vec::new();
    entries.retain(|it| match &**it {
        ContextEntry::Call(call) => {
            call_ids.push(call.id.clone());
            true
        }
        ContextEntry::Output { call, .. } => call_ids.contains(call),
        _ => true,
    });
    let note = "The older part of the history is left out here, because it is too long to be read.";
    let note = SharedEntry::from(ContextEntry::Note(note.to_owned()));
    entries.splice(..0, [note].into_iter().chain(user_message));
}

/// Approximate length of an entry.
fn approximate_len(entry: &ContextEntry) -> usize {
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
    fn only_the_history_of_the_same_lineage_is_reused() {
        let history = History::new(HistoryBudget::default());
        history.keep(read(1, 10));
        assert!(history.take(&lineage(2)).is_none());
        assert!(history.take(&lineage(1)).is_none());
        history.keep(read(1, 10));
        assert!(history.take(&lineage(1)).is_some());
    }

    /// Records with these sequence numbers, each visible to the model.
    fn notes(numbers: std::ops::Range<u64>) -> Vec<Record> {
        let note = |number| {
            let brief = Briefed {
                topic: Topic::Environment,
                text: format!("{number}"),
                sources: Vec::new(),
                is_asked: false,
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
    fn stored_records_are_applied_once_and_without_a_gap() {
        for (stored, expected) in [
            (vec![(0, 1..3), (2, 3..5)], "1 2 3 4"),
            // A model call has read some of it since.
            (vec![(0, 1..3), (1, 2..5)], "1 2 3 4"),
            // Another writer stored a record in between.
            (vec![(0, 1..3), (3, 4..5)], "1 2"),
        ] {
            let history = History::of_new(HistoryBudget::default());
            for (after, numbers) in stored.clone() {
                history.follow(&lineage(1), Seq(after), &notes(numbers));
            }
            let read = history.take(&lineage(1)).expect("a history");
            let entries = read.context.entries();
            let texts = entries.iter().map(|piece| match &**piece {
                ContextEntry::Note(text) => text.as_str(),
                other => panic!("{other:?}"),
            });
            let texts: Vec<&str> = texts.collect();
            assert_eq!(texts.join(" "), expected, "{stored:?}");
        }
    }

    #[test]
    fn records_after_a_gap_are_not_applied() {
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
        for (halvings, expected) in [(0, "ucouco"), (1, "nuco"), (2, "nu"), (31, "nu")] {
            let mut entries = history();
            shorten(&mut entries, halvings);
            assert_eq!(kinds(&entries), expected, "{halvings}");
        }
    }

    #[test]
    fn all_threads_together_stay_within_the_history_budget() {
        let budget = HistoryBudget::default();
        let used = || budget.0.load(Ordering::Relaxed);
        let [first, second] = [(); 2].map(|()| History::new(budget.clone()));
        first.keep(read(1, HISTORY_BYTES_MAX - 10));
        second.keep(read(1, 11));
        assert!(second.take(&lineage(1)).is_none());
        second.keep(read(1, 10));
        assert_eq!(used(), HISTORY_BYTES_MAX);
        drop(first);
        assert_eq!(used(), 10);
        drop(second);
        assert_eq!(used(), 0);
    }
}
