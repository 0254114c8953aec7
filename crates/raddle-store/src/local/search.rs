//! Search: an index in a file of its own, made from the records and some way behind them.
//!
//! Everything here can be thrown away; a thread of its own makes it again. How far it has come with a
//! thread is its watermark.

mod index;
mod indexer;
mod lag;
mod signal;
mod walk;

pub(super) use indexer::Indexer;
pub use lag::Lag;
pub(super) use signal::IndexSignal;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use raddle_core::Seq;
use raddle_core::ports::{ListQuery, Page, ReadError, Summary};
use rusqlite::{Connection, Error};

use super::error;
use super::lists::{self, Lists};
use crate::page::{self, ListCursor};
use index::{IndexSnapshot, Matches};
use walk::SearchWalk;

/// With more threads than this it is quicker to walk the list than to look each of them up.
const THREADS_MAX: usize = 1000;

/// How long a page is looked for. What was found until then is a page, and the next goes on from there.
const TIME_MAX: Duration = Duration::from_millis(50);

/// A page of threads that hold a text.
pub(super) fn search(
    lists: Lists<'_>,
    folder: &Path,
    text: &str,
    query: &ListQuery,
) -> Result<Page<Summary>, ReadError> {
    let begun = Instant::now();
    let is_late = || begun.elapsed() > TIME_MAX;
    search_until(lists, folder, text, query, &is_late)
}

fn search_until(
    lists: Lists<'_>,
    folder: &Path,
    text: &str,
    query: &ListQuery,
    is_late: &dyn Fn() -> bool,
) -> Result<Page<Summary>, ReadError> {
    let cursor = ListCursor::parse(query)?;
    let index = match page::search_text(text) {
        Some(text) => IndexSnapshot::open(folder, text)?,
        None => None,
    };
    let Some(index) = index else {
        return Ok(page::of_threads(Vec::new(), query));
    };
    if !index.is_rare()? {
        return SearchWalk::new(&index).page(lists, query, cursor, is_late);
    }
    let found = index.all()?;
    let Some(threads) = with_forks(lists.connection, &found).map_err(error::open)? else {
        return SearchWalk::knowing(&index, found).page(lists, query, cursor, is_late);
    };
    let mut threads = lists.of_numbers(&threads).map_err(error::open)?;
    threads.retain(|it| lists::wanted(it, query, cursor));
    page::arrange(&mut threads, query);
    Ok(page::of_threads(threads, query))
}

/// The threads that have what was found: its own, and those that took it over. Nothing if they are many.
fn with_forks(connection: &Connection, found: &Matches) -> Result<Option<BTreeSet<i64>>, Error> {
    let mut threads: BTreeSet<i64> = found.keys().copied().collect();
    let mut forks =
        connection.prepare_cached("SELECT number FROM part WHERE taken = ?1 AND upto >= ?2")?;
    for (number, Seq(first)) in found {
        let mut rows = forks.query([*number, i64::try_from(*first).unwrap_or(i64::MAX)])?;
        while let Some(row) = rows.next()? {
            threads.insert(row.get(0)?);
            if threads.len() > THREADS_MAX {
                return Ok(None);
            }
        }
    }
    Ok((threads.len() <= THREADS_MAX).then_some(threads))
}

#[cfg(test)]
mod tests;
