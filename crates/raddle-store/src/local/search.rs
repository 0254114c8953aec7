//! Search: an index in its own file, derived from the records and updated with a delay.
//!
//! The index can be deleted at any time; a separate thread rebuilds it. Its watermark for each
//! thread is the last record that it contains.

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

/// With more matching threads than this, walking the list is faster than looking each of them up.
const THREADS_MAX: usize = 1000;

/// Limit: time one page of a search scans threads; beyond it, the page ends early, and its cursor
/// continues.
const TIME_MAX: Duration = Duration::from_millis(50);

/// Returns a page of threads that contain a text.
pub(super) fn search(
    lists: Lists<'_>,
    folder: &Path,
    text: &str,
    query: &ListQuery,
) -> Result<Page<Summary>, ReadError> {
    let start = Instant::now();
    let is_late = || start.elapsed() > TIME_MAX;
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
    let matches = index.all()?;
    let Some(threads) = with_forks(lists.connection, &matches).map_err(error::open)? else {
        return SearchWalk::with_matches(&index, matches).page(lists, query, cursor, is_late);
    };
    let mut threads = lists.of_numbers(&threads).map_err(error::open)?;
    threads.retain(|it| lists::is_on_page(it, query, cursor));
    page::arrange(&mut threads, query);
    Ok(page::of_threads(threads, query))
}

/// Returns the threads that contain the matches: their own, and the forks that share them. Returns
/// `None` if there are too many.
fn with_forks(connection: &Connection, matches: &Matches) -> Result<Option<BTreeSet<i64>>, Error> {
    let mut threads: BTreeSet<i64> = matches.keys().copied().collect();
    let mut forks =
        connection.prepare_cached("SELECT number FROM part WHERE taken = ?1 AND upto >= ?2")?;
    for (number, Seq(first)) in matches {
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
