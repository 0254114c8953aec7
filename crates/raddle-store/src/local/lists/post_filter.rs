//! Filters of a list that the index in use does not cover.

use raddle_core::ports::{ListQuery, ListScope};
use rusqlite::{Connection, Error};
use serde::Deserialize;

use crate::local::summary;

/// Filters without an index. Most threads fail them and are not read any further.
pub(super) struct PostFilter<'a> {
    pub(super) query: &'a ListQuery,
    pub(super) sources: Option<Vec<String>>,
    /// Whether an index of folders is used, which lacks the filters of the index of all threads.
    in_folder: bool,
    /// Whether the scope names a tenant or a principal, which no index has. A thread with a tenant
    /// that the scope lacks is rejected when it is read.
    in_scope: bool,
}

/// Members of the column `rest` by which a scope filters.
#[derive(Deserialize)]
struct ScopeMembers {
    #[serde(default)]
    tenant: Option<String>,
    #[serde(default)]
    principal: Option<String>,
}

impl<'a> PostFilter<'a> {
    pub(super) fn of(query: &'a ListQuery) -> Self {
        let sources = query.sources.as_ref();
        Self {
            query,
            sources: sources.map(|them| them.iter().map(summary::source).collect()),
            in_folder: !query.cwds.is_empty(),
            in_scope: query.scope != ListScope::default(),
        }
    }

    /// Whether a thread may match. Unreadable rows pass here; reading the whole thread reports
    /// them.
    pub(super) fn may_match(&self, connection: &Connection, number: i64) -> Result<bool, Error> {
        if self.query.title.is_none() && !self.in_folder && !self.in_scope {
            return Ok(true);
        }
        let sql = "SELECT name, preview, source, provider, originator, rest FROM summary
                   WHERE number = ?1";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([number])?;
        let Ok(Some(row)) = rows.next() else {
            return Ok(true);
        };
        Ok(self.matches(row).unwrap_or(true))
    }

    fn matches(&self, row: &rusqlite::Row<'_>) -> Option<bool> {
        let text = |at: usize| row.get_ref(at).ok()?.as_str_or_null().ok();
        let any = |allowed: &[String], value: Option<&str>| {
            allowed.is_empty() || value.is_some_and(|value| allowed.iter().any(|it| it == value))
        };
        let source = text(2)??;
        let is_source = |allowed: &Vec<String>| allowed.iter().any(|it| it == source);
        let passes = self.sources.as_ref().is_none_or(is_source)
            && any(&self.query.providers, text(3)?)
            && any(&self.query.originators, text(4)?)
            && self.query.matches_title(text(0)?, text(1)??)
            && (!self.in_scope || self.matches_scope(text(5)??)?);
        Some(passes)
    }

    fn matches_scope(&self, rest: &str) -> Option<bool> {
        let it: ScopeMembers = serde_json::from_str(rest).ok()?;
        let scope = &self.query.scope;
        let is_principal = |only: &String| it.principal.as_ref() == Some(only);
        Some(it.tenant == scope.tenant && scope.principal.as_ref().is_none_or(is_principal))
    }
}
