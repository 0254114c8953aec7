//! Filters of a list that the index in use does not cover.

use raddle_core::ports::ListQuery;
use rusqlite::{Connection, Error};

use crate::local::summary;

/// Filters without an index. Most threads fail them and are not read any further.
pub(super) struct PostFilter<'a> {
    pub(super) query: &'a ListQuery,
    pub(super) sources: Option<Vec<String>>,
    /// Whether an index of folders is used, which lacks the filters of the index of all threads.
    in_folder: bool,
}

impl<'a> PostFilter<'a> {
    pub(super) fn of(query: &'a ListQuery) -> Self {
        let sources = query.sources.as_ref();
        Self {
            query,
            sources: sources.map(|them| them.iter().map(summary::source).collect()),
            in_folder: !query.cwds.is_empty(),
        }
    }

    /// Whether a thread may match. Unreadable rows pass here; reading the whole thread reports
    /// them.
    pub(super) fn may_match(&self, connection: &Connection, number: i64) -> Result<bool, Error> {
        if self.query.title.is_none() && !self.in_folder {
            return Ok(true);
        }
        let sql =
            "SELECT name, preview, source, provider, originator FROM summary WHERE number = ?1";
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
            && self.query.matches_title(text(0)?, text(1)??);
        Some(passes)
    }
}
