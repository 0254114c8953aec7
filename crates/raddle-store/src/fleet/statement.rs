//! A statement that is composed of parts, with numbered parameters.

use super::connection::Param;

/// SQL and its parameters. The same parts give the same text, so that it is prepared once.
#[derive(Default)]
pub(super) struct Statement<'a> {
    pub(super) sql: String,
    pub(super) params: Vec<Param<'a>>,
}

impl<'a> Statement<'a> {
    /// Adds a parameter, and returns its number as SQL.
    pub(super) fn bind(&mut self, value: Param<'a>) -> String {
        self.params.push(value);
        format!("${}", self.params.len())
    }

    /// Appends SQL.
    pub(super) fn push(&mut self, sql: &str) {
        self.sql.push_str(sql);
    }
}

/// Returns a text as PostgreSQL can store it: it has no NUL character. The replacement is no
/// character either, so it is in no text that a user writes.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffe}")
}

/// Returns the condition that a long text in an index equals a parameter. The index has its first
/// characters only, because an entry has at most 2,704 bytes.
pub(super) fn indexed(column: &str, param: &str) -> String {
    format!("left({column}, 200) = left({param}, 200) AND {column} = {param}")
}
