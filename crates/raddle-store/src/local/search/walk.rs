//! Walk down the list for a text whose trigrams are common.
//!
//! The index could return all matches, but only at the cost of all records. So it is queried for
//! the threads on the walk: for few threads by number, for many by block.

use std::collections::{BTreeMap, BTreeSet};

use raddle_core::ports::{ListQuery, Page, ReadError, Summary};

use super::index::{IndexSnapshot, Matches, block_of};
use crate::local::error;
use crate::local::lists::{CandidateThread, Lists};
use crate::page::{self, ListCursor};

/// Number of threads taken from the list at a time: few at first, because most pages fill soon, and
/// then enough to group the threads of a block.
const STEP_MIN: usize = 31;
const STEP_MAX: usize = 4096;

/// Maximum number of threads in one query by number.
const NAMES_MAX: usize = 32;

/// Minimum number of candidates in a block for a query of the whole block. With fewer, the query
/// would repeat for each page if the list is not in the order of creation.
const BLOCK_THREADS_MIN: usize = 128;

/// A walk and its findings so far.
#[derive(Debug)]
pub(super) struct SearchWalk<'a> {
    index: &'a IndexSnapshot,
    /// Whether all matches of the text are known.
    knows_all: bool,
    /// Blocks and numbers that were queried.
    blocks: BTreeSet<i64>,
    numbers: BTreeSet<i64>,
    matches: Matches,
}

impl<'a> SearchWalk<'a> {
    pub(super) fn new(index: &'a IndexSnapshot) -> Self {
        Self {
            index,
            knows_all: false,
            blocks: BTreeSet::new(),
            numbers: BTreeSet::new(),
            matches: Matches::new(),
        }
    }

    /// Creates a walk that queries nothing, because all matches are known.
    pub(super) fn with_matches(index: &'a IndexSnapshot, matches: Matches) -> Self {
        Self {
            knows_all: true,
            matches,
            ..Self::new(index)
        }
    }

    /// Returns a page of threads that contain the text. At the time limit the page ends with the
    /// last visited thread, but it visits at least one.
    pub(super) fn page(
        mut self,
        lists: Lists<'_>,
        query: &ListQuery,
        cursor: Option<ListCursor>,
        is_late: &dyn Fn() -> bool,
    ) -> Result<Page<Summary>, ReadError> {
        let limit = page::limit(query.limit);
        let mut matching = BTreeSet::new();
        let mut last = cursor;
        let mut count = (limit + 1).clamp(STEP_MIN, STEP_MAX);
        let more = 'walk: loop {
            let step = lists.step(query, last, count).map_err(error::open)?;
            let counts = block_counts(&step);
            for (at, thread) in step.iter().enumerate() {
                // Known threads cost nothing, so the time limit applies only before a query.
                if !self.knows(thread) && last != cursor && is_late() {
                    break 'walk true;
                }
                while !self.knows(thread) {
                    self.query_index(&step[at..], &counts)?;
                }
                if self.holds(thread) {
                    if matching.len() == limit {
                        break 'walk true;
                    }
                    matching.insert(thread.number);
                }
                last = Some(ListCursor {
                    key: thread.key,
                    included: false,
                });
            }
            if step.len() < count {
                break false;
            }
            if is_late() {
                break true;
            }
            count = STEP_MAX;
        };
        let mut entries = lists.of_numbers(&matching).map_err(error::open)?;
        entries.retain(|it| query.matches(it));
        page::arrange(&mut entries, query);
        let mut page = page::of_threads(entries, query);
        page.next = last.filter(|_| more).map(|it| it.text(query.order));
        Ok(page)
    }

    fn knows(&self, thread: &CandidateThread) -> bool {
        thread
            .rows
            .iter()
            .all(|(number, _)| self.knows_number(*number))
    }

    fn knows_number(&self, number: i64) -> bool {
        self.knows_all || self.blocks.contains(&block_of(number)) || self.numbers.contains(&number)
    }

    /// Whether a known thread contains the text.
    fn holds(&self, thread: &CandidateThread) -> bool {
        let first_match = |number| self.matches.get(&number);
        let mut rows = thread.rows.iter();
        rows.any(|(number, upto)| first_match(*number).is_some_and(|first| first <= upto))
    }

    /// Queries the index for the first of these threads, and for others at the same time.
    fn query_index(
        &mut self,
        threads: &[CandidateThread],
        counts: &BlockCounts,
    ) -> Result<(), ReadError> {
        let rows = threads.iter().flat_map(|thread| &thread.rows);
        let unknown = rows.filter(|(number, _)| !self.knows_number(*number));
        let mut numbers = unknown.map(|(number, _)| *number);
        let Some(first) = numbers.next() else {
            return Ok(());
        };
        let is_crowded = |number| {
            let count = counts.get(&block_of(number));
            count.is_some_and(|count| *count >= BLOCK_THREADS_MIN)
        };
        if is_crowded(first) {
            let block = block_of(first);
            self.matches.extend(self.index.in_block(block)?);
            self.blocks.insert(block);
            return Ok(());
        }
        let others = numbers.filter(|number| !is_crowded(*number));
        let batch: BTreeSet<i64> = others.take(NAMES_MAX - 1).chain([first]).collect();
        self.matches
            .extend(self.index.among(batch.iter().copied())?);
        self.numbers.extend(batch);
        Ok(())
    }
}

/// Number of candidates in each block.
type BlockCounts = BTreeMap<i64, usize>;

fn block_counts(threads: &[CandidateThread]) -> BlockCounts {
    let mut counts = BlockCounts::new();
    for thread in threads {
        *counts.entry(block_of(thread.number)).or_default() += 1;
    }
    counts
}
