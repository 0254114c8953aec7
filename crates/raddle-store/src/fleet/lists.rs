//! Lists of threads, and search in them, by keyset cursors. Every query names one tenant.

use std::time::{Duration, Instant};

use raddle_core::ports::{ListOrder, ListQuery, Page, ReadError, Summary};
use raddle_core::{ThreadId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::error::{self, QueryFailure};
use super::statement::{Statement, indexed, storable};
use super::summary_row;
use super::thread_state::seq;
use crate::page::{self, ListCursor, ListKey};

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
    let count = page::limit(query.limit) + 1;
    let walk = Walk {
        journal,
        query: &query,
        needle: None,
    };
    let rows_first = if Filter::of(&query, None).skips() {
        count.max(FILTERED_ROWS)
    } else {
        count
    };
    walk.page(cursor, rows_first, |looks| looks < LOOKS_MAX)
        .await
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
    let needle = needle.to_lowercase();
    let start = Instant::now();
    let walk = Walk {
        journal,
        query: &query,
        needle: Some(&needle),
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
    /// Text that a thread must contain, in lower case.
    needle: Option<&'a str>,
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
            if self.needle.is_some() {
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
        filter.write(&mut statement, &limit);
        let passes = filter.passes(&mut statement);
        let holds = match &self.needle {
            None => "true".to_owned(),
            Some(needle) => {
                let needle = statement.bind(needle);
                format!(
                    "EXISTS (SELECT 1 FROM texts WHERE texts.log = s.log
                         AND strpos(texts.text, {needle}::text) > 0)
                     OR EXISTS (SELECT 1 FROM parts JOIN texts ON texts.log = parts.taken
                         AND texts.seq BETWEEN parts.first AND parts.upto
                         WHERE parts.log = s.log AND strpos(texts.text, {needle}::text) > 0)"
                )
            }
        };
        let sql = format!(
            "SELECT s.id, CASE WHEN NOT ({passes}) THEN NULL WHEN {holds} THEN s.body END,
                 s.head, s.sort_key
             FROM ({}) AS s {}",
            statement.sql,
            filter.order("sort_key")
        );
        let connections = &self.journal.connections;
        let connection = match self.needle {
            Some(_) => connections.search(),
            None => connections.reads(),
        };
        connection.query(&sql, &statement.params).await
    }
}

/// A thread that a walk looked at.
struct Candidate {
    key: ListKey,
    matching: Option<Summary>,
}

/// Filters of a query as values of columns.
struct Filter<'a> {
    query: &'a ListQuery,
    tenant: String,
    principal: Option<String>,
    visibility: i16,
    cwds: Vec<String>,
    providers: Vec<String>,
    originators: Vec<String>,
    sources: Option<Vec<String>>,
    except: Vec<Uuid>,
    cursor: Option<(i64, Uuid, bool)>,
}

impl<'a> Filter<'a> {
    fn of(query: &'a ListQuery, cursor: Option<ListCursor>) -> Self {
        let texts = |them: &[String]| them.iter().map(|it| storable(it)).collect::<Vec<_>>();
        let sources = query.sources.as_ref();
        Self {
            query,
            tenant: summary_row::tenant_of(&query.scope),
            principal: query.scope.principal.as_deref().map(storable),
            visibility: summary_row::visibility(query.archived),
            cwds: texts(&query.cwds),
            providers: texts(&query.providers),
            originators: texts(&query.originators),
            sources: sources.map(|them| them.iter().map(summary_row::source).collect()),
            except: query.except.iter().map(|it| *it.as_uuid()).collect(),
            cursor: cursor.map(|it| (it.key.0.0, *it.key.1.as_uuid(), it.included)),
        }
    }

    /// Returns the column by which the list is ordered.
    fn column(&self) -> &'static str {
        match self.query.order {
            ListOrder::Recency => "recency_at",
            ListOrder::Created => "created_at",
            ListOrder::Updated => "updated_at",
        }
    }

    fn order(&self, column: &str) -> String {
        let direction = if self.query.oldest_first {
            "ASC"
        } else {
            "DESC"
        };
        format!("ORDER BY {column} {direction}, id {direction}")
    }

    /// Returns the only folder, if an index has it.
    fn folder(&self) -> Option<&String> {
        let is_recency = self.query.order == ListOrder::Recency;
        let only = self.cwds.first().filter(|_| self.cwds.len() == 1);
        only.filter(|_| is_recency)
    }

    /// Returns the principal, if an index has it and not the folder.
    fn indexed_principal(&self) -> Option<&String> {
        let is_recency = self.query.order == ListOrder::Recency;
        let principal = self.principal.as_ref();
        principal.filter(|_| is_recency && self.folder().is_none())
    }

    /// Whether the list may leave out threads that a statement looks at.
    fn skips(&self) -> bool {
        let query = self.query;
        query.title.is_some()
            || query.used
            || self.sources.is_some()
            || !self.providers.is_empty()
            || !self.originators.is_empty()
            || !self.except.is_empty()
            || (!self.cwds.is_empty() && self.folder().is_none())
            || (self.principal.is_some() && self.indexed_principal().is_none())
    }

    /// Writes the query of the next threads of an index, whether they pass the other filters or not.
    /// So one statement looks at no more threads than its limit.
    fn write<'b>(&'b self, statement: &mut Statement<'b>, limit: &'b i64) {
        let (tenant, visibility) = (
            statement.bind(&self.tenant),
            statement.bind(&self.visibility),
        );
        let column = self.column();
        let mut conditions = vec![
            format!("s.tenant = {tenant}"),
            format!("s.visibility = {visibility}"),
        ];
        if let Some(principal) = self.indexed_principal() {
            let principal = statement.bind(principal);
            conditions.push(indexed("s.principal", &principal));
        }
        if let Some(cwd) = self.folder() {
            let cwd = statement.bind(cwd);
            conditions.push(indexed("s.cwd", &cwd));
        }
        if let Some((time, id, included)) = &self.cursor {
            let (time, id) = (statement.bind(time), statement.bind(id));
            let further = if self.query.oldest_first { ">" } else { "<" };
            let equal = if *included { "=" } else { "" };
            conditions.push(format!(
                "(s.{column}, s.id) {further}{equal} ({time}, {id})"
            ));
        }
        let limit = statement.bind(limit);
        statement.push(&format!(
            "SELECT s.*, s.{column} AS sort_key, t.head, t.log FROM summaries s
             JOIN threads t ON t.id = s.id AND t.live WHERE {} {} LIMIT {limit}",
            conditions.join(" AND "),
            self.order(&format!("s.{column}"))
        ));
    }

    /// Returns the condition of the filters that no index has.
    fn passes<'b>(&'b self, statement: &mut Statement<'b>) -> String {
        let mut conditions = vec!["true".to_owned()];
        if let Some(principal) = &self.principal
            && self.indexed_principal().is_none()
        {
            conditions.push(format!("s.principal = {}", statement.bind(principal)));
        }
        if !self.cwds.is_empty() && self.folder().is_none() {
            conditions.push(format!("s.cwd = ANY ({})", statement.bind(&self.cwds)));
        }
        for (name, values) in [
            ("provider", &self.providers),
            ("originator", &self.originators),
        ] {
            if !values.is_empty() {
                conditions.push(format!("s.{name} = ANY ({})", statement.bind(values)));
            }
        }
        if let Some(sources) = &self.sources {
            conditions.push(format!("s.source = ANY ({})", statement.bind(sources)));
        }
        if !self.except.is_empty() {
            conditions.push(format!("s.id <> ALL ({})", statement.bind(&self.except)));
        }
        if self.query.used {
            conditions.push("s.used".to_owned());
        }
        // A column without a value passes no filter of it.
        format!("({}) IS TRUE", conditions.join(" AND "))
    }
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
