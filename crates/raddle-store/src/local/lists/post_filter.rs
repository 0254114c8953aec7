//! What of a list's filters is not in the index by which it is read.

use raddle_core::ports::ListQuery;
use rusqlite::{Connection, Error};

use crate::local::summary;

/// The filters that no index has. Most threads do not pass them, and are not looked at any further.
pub(super) struct PostFilter<'a> {
    pub(super) query: &'a ListQuery,
    pub(super) sources: Option<Vec<String>>,
    /// Whether what an index of all threads has is not in that of a folder.
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

    /// Whether a thread may pass. What cannot be read here is told of by whoever reads all of it.
    pub(super) fn may_take(&self, connection: &Connection, number: i64) -> Result<bool, Error> {
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
        let any = |wanted: &[String], is: Option<&str>| {
            wanted.is_empty() || is.is_some_and(|is| wanted.iter().any(|it| it == is))
        };
        let source = text(2)??;
        let is_source = |wanted: &Vec<String>| wanted.iter().any(|it| it == source);
        let passes = self.sources.as_ref().is_none_or(is_source)
            && any(&self.query.providers, text(3)?)
            && any(&self.query.originators, text(4)?)
            && self.query.matches_title(text(0)?, text(1)??);
        Some(passes)
    }
}
