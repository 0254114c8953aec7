//! Lists of threads, and search in them, by keyset cursors. Every query names one tenant.

mod filter;
mod needle;

use std::time::{Duration, Instant};

use raddle_core::ports::{ListQuery, Page, ReadError, Summary};
use raddle_core::{ThreadId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::error::{self, QueryFailure};
use super::statement::Statement;
use super::summary_row;
use super::thread_state::seq;
use crate::page::{self, ListCursor, ListKey};
use filter::Filter;
use needle::Needle;

/// Limit: threads that one page of a list looks at; beyond it, the page ends early, and its cursor
/// continues.
const LOOKS_MAX: usize = 5_000;

/// Number of threads that one statement of a list with filters looks at.
const FILTERED_ROWS: usize = 256;

/// Number of threads that the first statement of a search looks at.
const SEARCH_ROWS_FIRST: usize = 8;

/// Maximum number of threads that one statement of a search looks at.
const SEARCH_ROWS_MAX: usize = 200;

/// Time of one statement of a search that the next one aims at.
const SEARCH_STATEMENT: Duration = Duration::from_millis(20);

/// Limit: time one page of a search looks at threads; beyond it, the page ends early, and its cursor
/// continues.
const SEARCH_MAX: Duration = Duration::from_millis(100);

/// Returns a page of threads.
pub(super) async fn list(
    journal: &SharedJournal,
    query: ListQuery,
) -> Result<Page<Summary>, ReadError> {
    let cursor = ListCursor::parse(&query)?;
    let walk = Walk {
        journal,
        query: &query,
        texts: Texts::Any,
    };
    walk.page(cursor, list_rows(&query), |looks| looks < LOOKS_MAX)
        .await
}

/// Returns how many threads one statement of a list looks at.
fn list_rows(query: &ListQuery) -> usize {
    let count = page::limit(query.limit) + 1;
    if Filter::of(query, None).skips() {
        count.max(FILTERED_ROWS)
    } else {
        count
    }
}

/// Returns a page of threads that contain a text.
pub(super) async fn search(
    journal: &SharedJournal,
    text: String,
    query: ListQuery,
) -> Result<Page<Summary>, ReadError> {
    let cursor = ListCursor::parse(&query)?;
    let Some(needle) = page::search_text(&text) else {
        return Ok(page::of_threads(Vec::new(), &query));
    };
    let needle = Needle::new(&needle, &query.scope);
    let start = Instant::now();
    if needle.is_rare(journal).await.map_err(error::read)? {
        let walk = Walk {
            journal,
            query: &query,
            texts: Texts::Found(&needle),
        };
        return walk.page(cursor, list_rows(&query), |_| true).await;
    }
    let walk = Walk {
        journal,
        query: &query,
        texts: Texts::Holding(&needle),
    };
    walk.page(cursor, SEARCH_ROWS_FIRST, |_| start.elapsed() < SEARCH_MAX)
        .await
}

/// Returns how many threads the next statement of a search looks at. Threads differ in size.
fn next_rows(rows: usize, took: Duration) -> usize {
    if took < SEARCH_STATEMENT / 2 {
        (rows * 4).min(SEARCH_ROWS_MAX)
    } else if took > SEARCH_STATEMENT * 2 {
        (rows / 4).max(1)
    } else {
        rows
    }
}

/// Walk down a list.
struct Walk<'a> {
    journal: &'a SharedJournal,
    query: &'a ListQuery,
    texts: Texts<'a>,
}

/// Text that a thread must contain.
#[derive(Clone, Copy, Debug)]
enum Texts<'a> {
    Any,
    /// Each thread of the list is examined for it.
    Holding(&'a Needle),
    /// The index has it.
    Found(&'a Needle),
}

impl Walk<'_> {
    /// Returns a page from a cursor on. Stops early once it may look at no more threads, or when the
    /// server cancels a statement.
    async fn page(
        &self,
        mut cursor: Option<ListCursor>,
        rows_first: usize,
        may_look: impl Fn(usize) -> bool,
    ) -> Result<Page<Summary>, ReadError> {
        let count = page::limit(self.query.limit) + 1;
        let mut entries = Vec::new();
        let mut looks = 0;
        let mut rows_max = rows_first;
        let mut is_end = false;
        while entries.len() < count && !is_end && (looks == 0 || may_look(looks)) {
            let start = Instant::now();
            let rows = match self.rows(cursor, rows_max).await {
                Ok(rows) => rows,
                Err(failure) if failure.is_canceled() && looks > 0 => break,
                Err(failure) if failure.is_canceled() && rows_max > 1 => {
                    rows_max = 1;
                    continue;
                }
                Err(failure) => return Err(error::read(failure)),
            };
            looks += rows.len();
            is_end = rows.len() < rows_max;
            if let Texts::Holding(_) = self.texts {
                rows_max = next_rows(rows_max, start.elapsed());
            }
            for row in &rows {
                let candidate = self.candidate(row);
                cursor = Some(ListCursor {
                    key: candidate.key,
                    included: false,
                });
                entries.extend(candidate.matching);
                if entries.len() == count {
                    break;
                }
            }
        }
        let mut page = page::of_threads(entries, self.query);
        if page.next.is_none() && !is_end {
            page.next = cursor.map(|it| it.text(self.query.order));
        }
        Ok(page)
    }

    fn candidate(&self, row: &Row) -> Candidate {
        let thread = ThreadId::from(row.get::<_, Uuid>(0));
        // The body is read only if the columns pass, which pass a superset.
        let body: Option<&str> = row.get(1);
        let summary = body.and_then(|body| {
            // Text that another node gathers is not looked up: its head in a list lags.
            let head = seq(row.get(2));
            let gathered = self.journal.threads.newest_gathered(thread);
            let head = gathered.map_or(head, |newest| newest.max(head));
            let summary = summary_row::parse(body, head);
            if summary.is_err() {
                tracing::warn!(%thread, "a list leaves out a thread whose entry cannot be read");
            }
            summary.ok()
        });
        Candidate {
            key: (Timestamp(row.get(3)), thread),
            matching: summary.filter(|it| self.query.matches(it)),
        }
    }

    /// Reads the next threads after a cursor.
    async fn rows(
        &self,
        cursor: Option<ListCursor>,
        rows_max: usize,
    ) -> Result<Vec<Row>, QueryFailure> {
        let filter = Filter::of(self.query, cursor);
        let mut statement = Statement::default();
        let limit = i64::try_from(rows_max).unwrap_or(i64::MAX);
        let only = match self.texts {
            Texts::Any | Texts::Holding(_) => None,
            Texts::Found(needle) => Some(needle.found(&mut statement)),
        };
        filter.write(&mut statement, only, &limit);
        let passes = filter.passes(&mut statement);
        let holds = match self.texts {
            Texts::Any | Texts::Found(_) => "true".to_owned(),
            Texts::Holding(needle) => needle.held(&mut statement),
        };
        let sql = format!(
            "SELECT s.id, CASE WHEN NOT ({passes}) THEN NULL WHEN {holds} THEN s.body END,
                 s.head, s.sort_key
             FROM ({}) AS s {}",
            statement.sql,
            filter.order("sort_key")
        );
        let connections = &self.journal.connections;
        let connection = match self.texts {
            Texts::Any => connections.reads(),
            Texts::Holding(_) | Texts::Found(_) => connections.search(),
        };
        connection.query(&sql, &statement.params).await
    }
}

/// A thread that a walk looked at.
struct Candidate {
    key: ListKey,
    matching: Option<Summary>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_adapts_to_the_size_of_threads() {
        for (rows, took_ms, expected) in [
            (8, 1, 32),
            (128, 1, 200),
            (200, 1, 200),
            (32, 20, 32),
            (32, 500, 8),
            (2, 500, 1),
            (1, 500, 1),
        ] {
            let took = Duration::from_millis(took_ms);
            assert_eq!(next_rows(rows, took), expected, "{rows} {took_ms}");
        }
    }
}
