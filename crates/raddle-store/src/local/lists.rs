//! Lists of threads. What was damaged of one thread keeps no other from being on them.

mod post_filter;

use std::collections::BTreeSet;

use raddle_core::ports::{ListOrder, ListQuery, Page, ReadError, Summary};
use raddle_core::{Seq, ThreadId, Timestamp};
use rusqlite::{Connection, Error, ToSql};

use super::error;
use super::fence::{self, ThreadRow};
use super::files::BlobFiles;
use super::quarantine::Quarantine;
use super::rowid;
use super::summary::{self, ListVisibility};
use crate::page::{self, ListCursor, ListKey};
use post_filter::PostFilter;

/// How many threads are looked at for a page that are not on it, where no index tells them apart. Then the
/// page ends, and the next goes on from there.
const LOOKS_MAX: usize = 5_000;

/// Where lists are made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists<'a> {
    pub(super) connection: &'a Connection,
    pub(super) files: &'a BlobFiles,
    /// Who is told of threads that cannot be shown.
    pub(super) quarantine: &'a Quarantine,
}

/// A thread's place in an index of the list.
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

/// Threads that were found on a walk, and where it was left off, if it was.
struct ListWalk<T> {
    found: Vec<T>,
    left_off: Option<ListKey>,
}

/// A thread that comes by on a walk down the list.
#[derive(Debug)]
pub(super) struct CandidateThread {
    pub(super) number: i64,
    pub(super) key: ListKey,
    /// Under which numbers its records lie, and up to which of each.
    pub(super) rows: Vec<(i64, Seq)>,
}

impl Lists<'_> {
    /// A page of threads.
    pub(super) fn page(&self, query: &ListQuery) -> Result<Page<Summary>, ReadError> {
        self.page_within(query, LOOKS_MAX)
    }

    /// The same, if no more threads are looked at in vain.
    fn page_within(&self, query: &ListQuery, looks: usize) -> Result<Page<Summary>, ReadError> {
        let cursor = ListCursor::parse(query)?;
        let room = page::limit(query.limit) + 1;
        let sieve = PostFilter::of(query);
        let entry = |spot| self.entry(spot, &sieve);
        let walked = self.walk(query, cursor, (room, looks), entry);
        let ListWalk {
            mut found,
            left_off,
        } = walked.map_err(error::open)?;
        page::arrange(&mut found, query);
        let mut page = page::of_threads(found, query);
        if page.next.is_none() {
            let included = false;
            let on = left_off.map(|place| ListCursor {
                key: place,
                included,
            });
            page.next = on.map(|it| it.text(query.order));
        }
        Ok(page)
    }

    /// The next threads of a walk down the list.
    pub(super) fn step(
        &self,
        query: &ListQuery,
        after: Option<ListCursor>,
        count: usize,
    ) -> Result<Vec<CandidateThread>, Error> {
        let sql = "SELECT taken, upto FROM part WHERE number = ?1";
        let mut parts = self.connection.prepare_cached(sql)?;
        let sieve = PostFilter::of(query);
        let mut passing = |spot: ListPosition| {
            let number = spot.number;
            if !sieve.may_take(self.connection, number)? {
                return Ok(None);
            }
            let mut rows = vec![(number, rowid::SEQ_MAX)];
            let mut taken = parts.query([number])?;
            while let Some(part) = taken.next()? {
                let upto: i64 = part.get(1)?;
                rows.push((part.get(0)?, Seq(upto.unsigned_abs())));
            }
            let place = spot.key;
            Ok(Some(CandidateThread {
                number,
                key: place,
                rows,
            }))
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

    /// The threads of these numbers that a list may show, in no order.
    pub(super) fn of_numbers(&self, numbers: &BTreeSet<i64>) -> Result<Vec<Summary>, Error> {
        let mut threads = Vec::new();
        for number in numbers {
            let thread = self.unless_damaged(*number, None, || self.thread(*number, None));
            threads.extend(thread?);
        }
        Ok(threads)
    }

    /// The thread that stands at a place, if it is wanted.
    fn entry(&self, spot: ListPosition, sieve: &PostFilter<'_>) -> Result<Option<Summary>, Error> {
        let (number, query) = (spot.number, sieve.query);
        self.unless_damaged(number, Some(spot.key.1), || {
            if !sieve.may_take(self.connection, number)? {
                return Ok(None);
            }
            let thread = self.thread(number, Some(spot.key.1))?;
            let there = thread.filter(|it| page::list_key(it, query.order) == spot.key);
            let thread = there.ok_or_else(|| misplaced(number))?;
            Ok(query.matches(&thread).then_some(thread))
        })
    }

    /// Passes over a thread that is damaged.
    fn unless_damaged<T>(
        &self,
        number: i64,
        thread: Option<ThreadId>,
        look: impl FnOnce() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        match look() {
            Err(error) if error::is_damage(&error) => {
                self.quarantine.pass_over(number, thread, &error);
                Ok(None)
            }
            found => found,
        }
    }

    /// What lists show of a thread, if they do. It is made again from the records where it was hit.
    fn thread(&self, number: i64, id: Option<ThreadId>) -> Result<Option<Summary>, Error> {
        let found = match (fence::of_number(self.connection, number), id) {
            // Its number leads to a row that was hit, and its id to the same one: then it was the id.
            (Err(error), Some(id)) if error::is_damage(&error) => {
                let row = fence::row(self.connection, id)?;
                row.map(|row| (id, row))
            }
            (found, _) => found?,
        };
        let there = |(_, row): &(_, ThreadRow)| row.number == number && !row.deleting;
        let Some((thread, row)) = found.filter(there) else {
            return Ok(None);
        };
        match shown(self.connection, thread, &row) {
            Err(error) if error::is_damage(&error) => {}
            shown => return shown,
        }
        let anew = summary::anew(self.connection, self.files, thread, &row);
        let anew = anew.map_err(|error| error::damaged(&error.to_string()))?;
        let long = || error::damaged("what lists show of it was changed, and it is long");
        let summary = anew.ok_or_else(long)?.filter(|it| it.thread == thread);
        let summary = summary.map(|it| with_head(self.connection, &row, it));
        summary.transpose()
    }

    /// Walks down a list from a cursor until so many were found or so many looked at in vain; down the list
    /// of each folder, if folders are asked for.
    fn walk<T>(
        &self,
        query: &ListQuery,
        cursor: Option<ListCursor>,
        (room, looks): (usize, usize),
        mut take: impl FnMut(ListPosition) -> Result<Option<T>, Error>,
    ) -> Result<ListWalk<T>, Error> {
        // Each folder has its own place in the index.
        let mut folders: BTreeSet<Option<&str>> =
            query.cwds.iter().map(|it| Some(it.as_str())).collect();
        if folders.is_empty() {
            folders.insert(None);
        }
        let looks = (looks / folders.len()).max(1);
        let mut found: Vec<(ListKey, T)> = Vec::new();
        let mut left_off: Option<ListKey> = None;
        for folder in folders {
            let full = found.len() + room;
            let mut looked = 0;
            self.walk_folder(query, cursor, folder, |spot| {
                match take(spot)? {
                    Some(it) => found.push((spot.key, it)),
                    None => looked += 1,
                }
                if looked == looks {
                    left_off = left_off.map_or(Some(spot.key), |other| {
                        let nearest = if query.oldest_first {
                            Ord::min
                        } else {
                            Ord::max
                        };
                        Some(nearest(other, spot.key))
                    });
                }
                Ok(found.len() < full && looked < looks)
            })?;
        }
        // What lies beyond comes again on the next page, with what was not looked at.
        found.retain(|(place, _)| match left_off {
            Some(end) if query.oldest_first => *place <= end,
            Some(end) => *place >= end,
            None => true,
        });
        Ok(ListWalk {
            found: found.into_iter().map(|(_, it)| it).collect(),
            left_off,
        })
    }

    /// Walks down the list of a folder, or of all, for as long as more is wanted. It goes by an index alone: a
    /// row that cannot be read is no obstacle.
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
        // The filters that are not in an index of folders are seen to by whoever looks at the thread.
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
        let shelf = if query.archived {
            ListVisibility::Archived as i64
        } else {
            ListVisibility::Open as i64
        };
        let (time, id) = match cursor {
            Some(ListCursor { key: place, .. }) => {
                (place.0.0, place.1.as_uuid().as_bytes().to_vec())
            }
            // Nothing comes before these or after these: every id has 16 bytes.
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
        let mut values: Vec<&dyn ToSql> = vec![&shelf, &time, &id, &folder];
        if folder.is_none() {
            values.extend(filters.iter().map(|it| it as &dyn ToSql));
        }
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(values.as_slice())?;
        while let Some(row) = rows.next()? {
            // An entry that names no thread leads to none.
            if let Ok(spot) = ListPosition::read(row)
                && !more(spot)?
            {
                break;
            }
        }
        Ok(())
    }
}

/// A filter, as one value; nothing if it lets all pass.
fn list_of(wanted: &[String]) -> Option<String> {
    let some = (!wanted.is_empty()).then_some(wanted)?;
    serde_json::to_string(some).ok()
}

fn misplaced(number: i64) -> Error {
    error::damaged(&format!(
        "the list has a thread of the number {number} where none is"
    ))
}

/// A thread as a list shows it, if one does.
pub(super) fn shown(
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
    summary.head = fence::head(connection, summary.thread, row)?;
    Ok(summary)
}

/// Whether a thread belongs on a page.
pub(super) fn wanted(it: &Summary, query: &ListQuery, cursor: Option<ListCursor>) -> bool {
    let place = page::list_key(it, query.order);
    query.matches(it) && cursor.is_none_or(|cursor| cursor.leads_to(place, query.oldest_first))
}

#[cfg(test)]
mod tests;
