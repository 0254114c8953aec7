//! Lists of threads. Damage to one thread does not hide the others.

mod post_filter;

use std::collections::BTreeSet;

use raddle_core::ports::{ListOrder, ListQuery, Page, ReadError, Summary};
use raddle_core::{Seq, ThreadId, Timestamp};
use rusqlite::{Connection, Error, ToSql};

use super::error;
use super::fence::{self, ThreadRow};
use super::files::BlobFiles;
use super::head;
use super::quarantine::Quarantine;
use super::rowid;
use super::summary::{self, ListVisibility};
use crate::page::{self, ListCursor, ListKey};
use post_filter::PostFilter;

/// Limit: threads that one page of a list scans without an index; beyond it, the page ends early,
/// and its cursor continues.
const LOOKS_MAX: usize = 5_000;

/// Sources of the lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists<'a> {
    pub(super) connection: &'a Connection,
    pub(super) files: &'a BlobFiles,
    /// Receiver of the threads that cannot be shown.
    pub(super) quarantine: &'a Quarantine,
}

/// Position of a thread in an index of the list.
#[derive(Clone, Copy, Debug)]
struct ListPosition {
    number: i64,
    key: ListKey,
}

impl ListPosition {
    fn read(row: &rusqlite::Row<'_>) -> Result<Self, Error> {
        let id: [u8; 16] = row.get(2)?;
        Ok(Self {
            number: row.get(0)?,
            key: (Timestamp(row.get(1)?), uuid::Uuid::from_bytes(id).into()),
        })
    }
}

/// Threads found by a walk, and where it stopped early, if it did.
struct ListWalk<T> {
    found: Vec<T>,
    left_off: Option<ListKey>,
}

/// Thread on a walk down the list.
#[derive(Debug)]
pub(super) struct CandidateThread {
    pub(super) number: i64,
    pub(super) key: ListKey,
    /// Numbers under which its records are stored, each with its last record.
    pub(super) rows: Vec<(i64, Seq)>,
}

impl Lists<'_> {
    /// Returns a page of threads.
    pub(super) fn page(&self, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
        self.page_within(query, LOOKS_MAX)
    }

    /// Returns a page of threads, but stops after too many threads that do not belong on it.
    fn page_within(
        &self,
        query: &ListQuery,
        misses_max: usize,
    ) -> Result<Page<Summary>, ReadError> {
        let cursor = ListCursor::parse(query)?;
        let entries_max = page::limit(query.limit) + 1;
        let filter = PostFilter::of(query);
        let entry = |position| self.entry(position, &filter);
        let walked = self.walk(query, cursor, (entries_max, misses_max), entry);
        let ListWalk {
            mut found,
            left_off,
        } = walked.map_err(error::open)?;
        page::arrange(&mut found, query);
        let mut page = page::of_threads(found, query);
        if page.next.is_none() {
            let included = false;
            let resume = left_off.map(|key| ListCursor { key, included });
            page.next = resume.map(|it| it.text(query.order));
        }
        Ok(page)
    }

    /// Returns the next threads of a walk down the list.
    pub(super) fn step(
        &self,
        query: &ListQuery,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<CandidateThread>, Error> {
        let sql = "SELECT taken, upto FROM part WHERE number = ?1";
        let mut parts = self.connection.prepare_cached(sql)?;
        let filter = PostFilter::of(query);
        let mut passing = |position: ListPosition| {
            let number = position.number;
            if !filter.may_match(self.connection, number)? {
                return Ok(None);
            }
            let mut rows = vec![(number, rowid::SEQ_MAX)];
            let mut shared = parts.query([number])?;
            while let Some(part) = shared.next()? {
                let upto: i64 = part.get(1)?;
                rows.push((part.get(0)?, Seq(upto.unsigned_abs())));
            }
            let key = position.key;
            Ok(Some(CandidateThread { number, key, rows }))
        };
        let walked = self.walk(query, after, (count, usize::MAX), &mut passing)?;
        let mut passing = walked.found;
        passing.sort_by_key(|it| it.key);
        if !query.oldest_first {
            passing.reverse();
        }
        passing.truncate(count);
        Ok(passing)
    }

    /// Returns those threads of these numbers that a list may show, unordered.
    pub(super) fn of_numbers(&self, numbers: &BTreeSet<i64>) -> Result<Vec<Summary>, Error> {
        let mut threads = Vec::new();
        for number in numbers {
            let thread = self.unless_damaged(*number, None, || self.thread(*number, None));
            threads.extend(thread?);
        }
        Ok(threads)
    }

    /// Returns the thread at a position, if it matches the query.
    fn entry(
        &self,
        position: ListPosition,
        filter: &PostFilter<'_>,
    ) -> Result<Option<Summary>, Error> {
        let (number, query) = (position.number, filter.query);
        self.unless_damaged(number, Some(position.key.1), || {
            if !filter.may_match(self.connection, number)? {
                return Ok(None);
            }
            let thread = self.thread(number, Some(position.key.1))?;
            let matching = thread.filter(|it| page::list_key(it, query.order) == position.key);
            let thread = matching.ok_or_else(|| misplaced(number))?;
            Ok(query.matches(&thread).then_some(thread))
        })
    }

    /// Skips a damaged thread.
    fn unless_damaged<T>(
        &self,
        number: i64,
        thread: Option<ThreadId>,
        load: impl FnOnce() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        match load() {
            Err(error) if error::is_damage(&error) => {
                self.quarantine.pass_over(number, thread, &error);
                Ok(None)
            }
            result => result,
        }
    }

    /// Returns a thread's summary, if lists show it. Rebuilds the summary from the records if it is
    /// damaged.
    fn thread(&self, number: i64, id: Option<ThreadId>) -> Result<Option<Summary>, Error> {
        let entry = match (fence::of_number(self.connection, number), id) {
            // The row under its number is damaged, and its id leads to the same row: then the id
            // was damaged.
            (Err(error), Some(id)) if error::is_damage(&error) => {
                let row = fence::row(self.connection, id)?;
                row.map(|row| (id, row))
            }
            (entry, _) => entry?,
        };
        let is_current = |(_, row): &(_, ThreadRow)| row.number == number && !row.deleting;
        let Some((thread, row)) = entry.filter(is_current) else {
            return Ok(None);
        };
        match list_summary(self.connection, thread, &row) {
            Err(error) if error::is_damage(&error) => {}
            result => return result,
        }
        let rebuilt = summary::rebuild(self.connection, self.files, thread, &row);
        let rebuilt = rebuilt.map_err(|error| error::damaged(&error.to_string()))?;
        let too_long = || {
            error::damaged("its list entry is damaged, and the thread is too long to rebuild it")
        };
        let summary = rebuilt
            .ok_or_else(too_long)?
            .filter(|it| it.thread == thread);
        let summary = summary.map(|it| with_head(self.connection, &row, it));
        summary.transpose()
    }

    /// Walks down a list from a cursor until it has enough entries or too many misses. If the query
    /// names folders, it walks down the list of each.
    fn walk<T>(
        &self,
        query: &ListQuery,
        cursor: Option<ListCursor>,
        (entries_max, misses_max): (usize, usize),
        mut take: impl FnMut(ListPosition) -> Result<Option<T>, Error>,
    ) -> Result<ListWalk<T>, Error> {
        // The index has a separate range for each folder.
        let mut folders: BTreeSet<Option<&str>> =
            query.cwds.iter().map(|it| Some(it.as_str())).collect();
        if folders.is_empty() {
            folders.insert(None);
        }
        let misses_max = (misses_max / folders.len()).max(1);
        let mut entries: Vec<(ListKey, T)> = Vec::new();
        let mut left_off: Option<ListKey> = None;
        for folder in folders {
            let full = entries.len() + entries_max;
            let mut misses = 0;
            self.walk_folder(query, cursor, folder, |position| {
                match take(position)? {
                    Some(it) => entries.push((position.key, it)),
                    None => misses += 1,
                }
                if misses == misses_max {
                    left_off = left_off.map_or(Some(position.key), |other| {
                        let nearest = if query.oldest_first {
                            Ord::min
                        } else {
                            Ord::max
                        };
                        Some(nearest(other, position.key))
                    });
                }
                Ok(entries.len() < full && misses < misses_max)
            })?;
        }
        // Entries beyond the stop come again on the next page, with those that were not scanned.
        entries.retain(|(key, _)| match left_off {
            Some(end) if query.oldest_first => *key <= end,
            Some(end) => *key >= end,
            None => true,
        });
        Ok(ListWalk {
            found: entries.into_iter().map(|(_, it)| it).collect(),
            left_off,
        })
    }

    /// Walks down the list of a folder, or of all folders, while `more` returns true. It reads an
    /// index only, so an unreadable row does not stop it.
    fn walk_folder(
        &self,
        query: &ListQuery,
        cursor: Option<ListCursor>,
        folder: Option<&str>,
        mut more: impl FnMut(ListPosition) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let (column, [index, index_of_folder]) = match query.order {
            ListOrder::Recency => ("recency_at", ["summary_recent", "summary_folder"]),
            ListOrder::Created => ("created_at", ["summary_made", "summary_folder_made"]),
            ListOrder::Updated => ("updated_at", ["summary_changed", "summary_folder_changed"]),
        };
        let (further, direction) = if query.oldest_first {
            (">", "ASC")
        } else {
            ("<", "DESC")
        };
        let included = cursor.is_some_and(|cursor| cursor.included);
        let equal = if included { "=" } else { "" };
        // Filters that an index of folders lacks are applied later, to the thread itself.
        let (index, filter) = if folder.is_some() {
            (index_of_folder, "cwd = ?4")
        } else {
            let filter = "?4 IS NULL
                AND (?5 IS NULL OR provider IN (SELECT value FROM json_each(?5)))
                AND (?6 IS NULL OR source IN (SELECT value FROM json_each(?6)))
                AND (?7 IS NULL OR originator IN (SELECT value FROM json_each(?7)))";
            (index, filter)
        };
        let sql = format!(
            "SELECT number, {column}, id FROM summary INDEXED BY {index}
             WHERE shelf = ?1 AND ({column}, id) {further}{equal} (?2, ?3) AND {filter}
             ORDER BY {column} {direction}, id {direction}"
        );
        let visibility = if query.archived {
            ListVisibility::Archived as i64
        } else {
            ListVisibility::Open as i64
        };
        let (time, id) = match cursor {
            Some(ListCursor { key, .. }) => (key.0.0, key.1.as_uuid().as_bytes().to_vec()),
            // Lower and upper bounds of all positions: every id has 16 bytes.
            None if query.oldest_first => (i64::MIN, Vec::new()),
            None => (i64::MAX, vec![0xff; 17]),
        };
        let filters = [
            list_of(&query.providers),
            PostFilter::of(query)
                .sources
                .and_then(|them| serde_json::to_string(&them).ok()),
            list_of(&query.originators),
        ];
        let mut values: Vec<&dyn ToSql> = vec![&visibility, &time, &id, &folder];
        if folder.is_none() {
            values.extend(filters.iter().map(|it| it as &dyn ToSql));
        }
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(values.as_slice())?;
        while let Some(row) = rows.next()? {
            // An entry without a valid id leads to no thread.
            if let Ok(position) = ListPosition::read(row)
                && !more(position)?
            {
                break;
            }
        }
        Ok(())
    }
}

/// Returns a filter as one JSON value, or `None` if it accepts everything.
fn list_of(values: &[String]) -> Option<String> {
    let nonempty = (!values.is_empty()).then_some(values)?;
    serde_json::to_string(nonempty).ok()
}

fn misplaced(number: i64) -> Error {
    error::damaged(&format!(
        "the list refers to thread number {number}, which does not exist there"
    ))
}

/// Returns a thread as a list shows it, if one does.
pub(super) fn list_summary(
    connection: &Connection,
    thread: ThreadId,
    row: &ThreadRow,
) -> Result<Option<Summary>, Error> {
    let listed = summary::list_row(connection, row)?;
    let Some(listed) = listed.filter(|it| it.visibility != ListVisibility::Hidden) else {
        return Ok(None);
    };
    if listed.summary.thread != thread {
        return Err(misplaced(row.number));
    }
    with_head(connection, row, listed.summary).map(Some)
}

fn with_head(
    connection: &Connection,
    row: &ThreadRow,
    mut summary: Summary,
) -> Result<Summary, Error> {
    summary.head = head::of_row(connection, summary.thread, row)?;
    Ok(summary)
}

/// Whether a thread belongs on a page.
pub(super) fn is_on_page(it: &Summary, query: &ListQuery, cursor: Option<ListCursor>) -> bool {
    let key = page::list_key(it, query.order);
    query.matches(it) && cursor.is_none_or(|cursor| cursor.leads_to(key, query.oldest_first))
}

#[cfg(test)]
mod tests;
