//! Filters of a list, as SQL.

use raddle_core::ports::{ListOrder, ListQuery};
use uuid::Uuid;

use crate::fleet::statement::{Statement, indexed, storable};
use crate::fleet::summary_row;
use crate::page::ListCursor;

/// Filters of a query as values of columns.
pub(super) struct Filter<'a> {
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
    pub(super) fn of(query: &'a ListQuery, cursor: Option<ListCursor>) -> Self {
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

    pub(super) fn order(&self, column: &str) -> String {
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
    pub(super) fn skips(&self) -> bool {
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
    ///
    /// `only` is a further condition, which an index has too.
    pub(super) fn write<'b>(
        &'b self,
        statement: &mut Statement<'b>,
        only: Option<String>,
        limit: &'b i64,
    ) {
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
        conditions.extend(only);
        let limit = statement.bind(limit);
        statement.push(&format!(
            "SELECT s.*, s.{column} AS sort_key, t.head, t.log FROM summaries s
             JOIN threads t ON t.id = s.id AND t.live WHERE {} {} LIMIT {limit}",
            conditions.join(" AND "),
            self.order(&format!("s.{column}"))
        ));
    }

    /// Returns the condition of the filters that no index has.
    pub(super) fn passes<'b>(&'b self, statement: &mut Statement<'b>) -> String {
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
