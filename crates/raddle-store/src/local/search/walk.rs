//! A walk down the list for a text whose letters are everywhere.
//!
//! The index could say where all of it is, but only at the price of all records. So the threads that
//! come by are asked about: few by their names, many together with the others around them.

use std::collections::{BTreeMap, BTreeSet};

use raddle_core::ports::{ListQuery, Page, ReadError, Summary};

use super::index::{IndexSnapshot, Matches, block_of};
use crate::local::error;
use crate::local::lists::{CandidateThread, Lists};
use crate::page::{self, ListCursor};

/// How many threads are taken from the list at a time: few at first, because most pages are full soon, and
/// then so many that those of one block are seen together.
const STEP_MIN: usize = 31;
const STEP_MAX: usize = 4096;

/// How many are asked about by their names at a time.
const NAMES_MAX: usize = 32;

/// If so many of one block come by, all of it is looked at. With fewer it would be done again for each page
/// where the order of the list is not the order in which threads were made.
const BLOCK_THREADS_MIN: usize = 128;

/// A walk, and what it knows so far.
#[derive(Debug)]
pub(super) struct SearchWalk<'a> {
    index: &'a IndexSnapshot,
    /// Whether all that holds the text is found.
    knows_all: bool,
    /// Blocks and numbers that were looked at.
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

    /// One that looks at nothing, because all is found.
    pub(super) fn knowing(index: &'a IndexSnapshot, matches: Matches) -> Self {
        Self {
            knows_all: true,
            matches,
            ..Self::new(index)
        }
    }

    /// A page of those that hold the text. When it is late the page ends with the thread that came by last,
    /// but one at least comes by.
    pub(super) fn page(
        mut self,
        lists: Lists<'_>,
        query: &ListQuery,
        cursor: Option<ListCursor>,
        is_late: &dyn Fn() -> bool,
    ) -> Result<Page<Summary>, ReadError> {
        let limit = page::limit(query.limit);
        let mut held = BTreeSet::new();
        let mut last = cursor;
        let mut count = (limit + 1).clamp(STEP_MIN, STEP_MAX);
        let more = 'walk: loop {
            let step = lists.step(query, last, count).map_err(error::open)?;
            let crowds = block_counts(&step);
            for (at, thread) in step.iter().enumerate() {
                // What is known costs nothing, so only whoever would have to look is late.
                if !self.knows(thread) && last != cursor && is_late() {
                    break 'walk true;
                }
                while !self.knows(thread) {
                    self.look(&step[at..], &crowds)?;
                }
                if self.holds(thread) {
                    if held.len() == limit {
                        break 'walk true;
                    }
                    held.insert(thread.number);
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
        let mut entries = lists.of_numbers(&held).map_err(error::open)?;
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

    /// Whether a thread that is known holds the text.
    fn holds(&self, thread: &CandidateThread) -> bool {
        let found = |number| self.matches.get(&number);
        let mut rows = thread.rows.iter();
        rows.any(|(number, upto)| found(*number).is_some_and(|first| first <= upto))
    }

    /// Looks for what is not known of the first of these threads, and of others on the way.
    fn look(&mut self, threads: &[CandidateThread], crowds: &BlockCounts) -> Result<(), ReadError> {
        let rows = threads.iter().flat_map(|thread| &thread.rows);
        let unknown = rows.filter(|(number, _)| !self.knows_number(*number));
        let mut numbers = unknown.map(|(number, _)| *number);
        let Some(first) = numbers.next() else {
            return Ok(());
        };
        let is_crowded = |number| {
            let crowd = crowds.get(&block_of(number));
            crowd.is_some_and(|crowd| *crowd >= BLOCK_THREADS_MIN)
        };
        if is_crowded(first) {
            let block = block_of(first);
            self.matches.extend(self.index.in_block(block)?);
            self.blocks.insert(block);
            return Ok(());
        }
        let others = numbers.filter(|number| !is_crowded(*number));
        let named: BTreeSet<i64> = others.take(NAMES_MAX - 1).chain([first]).collect();
        self.matches
            .extend(self.index.among(named.iter().copied())?);
        self.numbers.extend(named);
        Ok(())
    }
}

/// How many of each block come by.
type BlockCounts = BTreeMap<i64, usize>;

fn block_counts(threads: &[CandidateThread]) -> BlockCounts {
    let mut crowds = BlockCounts::new();
    for thread in threads {
        *crowds.entry(block_of(thread.number)).or_default() += 1;
    }
    crowds
}
