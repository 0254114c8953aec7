//! Lists of threads, and search in them, by keyset cursors. Every query names one tenant.

use std::time::{Duration, Instant};

use raddle_core::ThreadId;
use raddle_core::ports::{ListOrder, ListQuery, Page, ReadError, Summary};
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::error;
use super::statement::{Statement, storable};
use super::summary_row;
use super::thread_state::seq;
use crate::page::{self, ListCursor, ListKey};

/// Limit: threads that one page of a list looks at; beyond it, the page ends early, and its cursor
/// continues.
const LOOKS_MAX: usize = 5_000;

/// Number of threads that one statement of a search looks at.
const SEARCH_ROWS_MAX: usize = 200;

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
    let rows_max = if query.title.is_some() {
        count.max(256)
    } else {
        count
    };
    let walk = Walk {
        journal,
        query: &query,
        needle: None,
        rows_max,
    };
    walk.page(cursor, |looks| looks < LOOKS_MAX).await
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
        rows_max: SEARCH_ROWS_MAX,
    };
    walk.page(cursor, |_| start.elapsed() < SEARCH_MAX).await
}

/// Walk down a list.
struct Walk<'a> {
    journal: &'a SharedJournal,
    query: &'a ListQuery,
    /// Text that a thread must contain, in lower case.
    needle: Option<&'a str>,
    /// Number of threads that one statement looks at.
    rows_max: usize,
}

impl Walk<'_> {
    /// Returns a page from a cursor on. Stops early once it may look at no more threads.
    async fn page(
        &self,
        mut cursor: Option<ListCursor>,
        may_look: impl Fn(usize) -> bool,
    ) -> Result<Page<Summary>, ReadError> {
        let count = page::limit(self.query.limit) + 1;
        let mut entries = Vec::new();
        let mut looks = 0;
        let mut is_end = false;
        while entries.len() < count && !is_end && (looks == 0 || may_look(looks)) {
            let rows = self.rows(cursor).await?;
            looks += rows.len();
            is_end = rows.len() < self.rows_max;
            for row in &rows {
                let candidate = self.candidate(row)?;
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

    fn candidate(&self, row: &Row) -> Result<Candidate, ReadError> {
        let id: Uuid = row.get(0);
        let thread = ThreadId::from(id);
        // Text that another node gathers is not looked up: its head in a list lags.
        let gathered = self.journal.threads.newest_gathered(thread);
        let head = gathered.map_or(seq(row.get(2)), |newest| newest.max(seq(row.get(2))));
        let summary = summary_row::parse(row.get(1), head)?;
        let key = (summary.time(self.query.order), thread);
        let holds: bool = row.get(3);
        // The columns pass a superset.
        let matches = holds && self.query.matches(&summary);
        Ok(Candidate {
            key,
            matching: matches.then_some(summary),
        })
    }

    /// Reads the next threads after a cursor.
    async fn rows(&self, cursor: Option<ListCursor>) -> Result<Vec<Row>, ReadError> {
        let filter = Filter::of(self.query, cursor);
        let mut statement = Statement::default();
        filter.write(&mut statement);
        let limit = i64::try_from(self.rows_max).unwrap_or(i64::MAX);
        let limit_param = statement.bind(&limit);
        let order = filter.order();
        let mut sql = format!("{} {order} LIMIT {limit_param}", statement.sql);
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
        sql = format!("SELECT s.id, s.body, s.head, {holds} FROM ({sql}) AS s {order}");
        let connection = self.journal.connections.reads();
        connection
            .query(&sql, &statement.params)
            .await
            .map_err(error::read)
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

    fn order(&self) -> String {
        let direction = if self.query.oldest_first {
            "ASC"
        } else {
            "DESC"
        };
        format!("ORDER BY {} {direction}, id {direction}", self.column())
    }

    /// Writes the query of the candidates, without order and limit.
    fn write<'b>(&'b self, statement: &mut Statement<'b>) {
        let (tenant, visibility) = (
            statement.bind(&self.tenant),
            statement.bind(&self.visibility),
        );
        let column = self.column();
        let mut conditions = vec![
            format!("s.tenant = {tenant}"),
            format!("s.visibility = {visibility}"),
        ];
        if let Some(principal) = &self.principal {
            conditions.push(format!("s.principal = {}", statement.bind(principal)));
        }
        if let Some((time, id, included)) = &self.cursor {
            let (time, id) = (statement.bind(time), statement.bind(id));
            let further = if self.query.oldest_first { ">" } else { "<" };
            let equal = if *included { "=" } else { "" };
            conditions.push(format!(
                "(s.{column}, s.id) {further}{equal} ({time}, {id})"
            ));
        }
        match self.cwds.as_slice() {
            [] => {}
            // One folder is a range of an index.
            [cwd] => conditions.push(format!("s.cwd = {}", statement.bind(cwd))),
            _ => conditions.push(format!("s.cwd = ANY ({})", statement.bind(&self.cwds))),
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
        statement.push(&format!(
            "SELECT s.id, s.body, s.{column}, t.head, t.log FROM summaries s
             JOIN threads t ON t.id = s.id AND t.live WHERE {}",
            conditions.join(" AND ")
        ));
    }
}
