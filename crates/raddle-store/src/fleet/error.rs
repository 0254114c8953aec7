//! Failures of statements, by what the caller can conclude from them.

use raddle_core::ports::{AppendError, ReadError};
use tokio_postgres::error::{DbError, SqlState};

use crate::blob;

/// Reason why a statement did not succeed, or may not have.
#[derive(Clone, Debug)]
pub(super) enum QueryFailure {
    /// The statement was not sent.
    NotSent(String),
    /// The server rejected the statement and rolled it back.
    Rejected(Rejection),
    /// The statement was sent, and its outcome is unknown.
    Lost(String),
    /// A newer version migrated the database.
    Newer(String),
    /// The operator must change something before the database can be used.
    Unusable(String),
}

/// Error response of the server.
#[derive(Clone, Debug)]
pub(super) struct Rejection {
    pub(super) code: SqlState,
    pub(super) text: String,
}

impl QueryFailure {
    /// Classifies an error of the client library after a statement was sent.
    pub(super) fn after_sending(error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(answer) if is_unclear(answer.code()) => Self::Lost(describe(answer)),
            Some(answer) => Self::rejected(answer),
            None => Self::Lost(with_causes(error)),
        }
    }

    /// Classifies an error of the client library before anything that writes was sent.
    pub(super) fn before_sending(error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(answer) => Self::rejected(answer),
            None => Self::NotSent(with_causes(error)),
        }
    }

    fn rejected(answer: &DbError) -> Self {
        let text = describe(answer);
        if is_unusable(answer.code()) {
            return Self::Unusable(format!("the database cannot be used: {text}"));
        }
        Self::Rejected(Rejection {
            code: answer.code().clone(),
            text,
        })
    }

    /// Whether another attempt of the same statement is due at once.
    pub(super) fn is_serialization(&self) -> bool {
        let Self::Rejected(rejection) = self else {
            return false;
        };
        rejection.code == SqlState::T_R_SERIALIZATION_FAILURE
            || rejection.code == SqlState::T_R_DEADLOCK_DETECTED
    }

    /// Whether the server canceled the statement, which took too long.
    pub(super) fn is_canceled(&self) -> bool {
        matches!(self, Self::Rejected(rejection) if rejection.code == SqlState::QUERY_CANCELED)
    }

    /// Whether the connection must not be used again.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::Rejected(rejection) => {
                let code = rejection.code.code();
                // The server is shutting down, a standby, or its tables were migrated.
                code.starts_with("57P")
                    || rejection.code == SqlState::READ_ONLY_SQL_TRANSACTION
                    || rejection.code == SqlState::FEATURE_NOT_SUPPORTED
                    || rejection.code == SqlState::INVALID_SQL_STATEMENT_NAME
            }
            Self::NotSent(_) | Self::Lost(_) | Self::Newer(_) | Self::Unusable(_) => true,
        }
    }
}

/// Codes after which the statement may have been committed.
fn is_unclear(code: &SqlState) -> bool {
    code.code().starts_with("08") || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

/// Codes that a retry does not change, because of what the statement has: a value that its column
/// cannot have, or one beyond a limit of the program.
fn is_unstorable(code: &SqlState) -> bool {
    code.code().starts_with("22") || code.code().starts_with("54")
}

/// Codes that a retry does not change: the role may not log in or may not use a table, or the
/// database does not exist.
fn is_unusable(code: &SqlState) -> bool {
    code.code().starts_with("28")
        || *code == SqlState::INSUFFICIENT_PRIVILEGE
        || *code == SqlState::INVALID_CATALOG_NAME
        || *code == SqlState::UNDEFINED_TABLE
        || *code == SqlState::UNDEFINED_COLUMN
}

fn describe(answer: &DbError) -> String {
    format!("{} ({})", answer.message(), answer.code().code())
}

/// Returns the text of an error and of its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Returns the error of an append.
pub(super) fn append(failure: QueryFailure) -> AppendError {
    match failure {
        QueryFailure::NotSent(what) => AppendError::Unavailable(what),
        QueryFailure::Lost(what) => AppendError::Unknown(what),
        QueryFailure::Newer(what) => AppendError::Newer(what),
        QueryFailure::Unusable(what) => AppendError::ReadOnly(what),
        QueryFailure::Rejected(rejection) => match &rejection.code {
            code if *code == SqlState::DISK_FULL => AppendError::Full(rejection.text),
            code if *code == SqlState::FOREIGN_KEY_VIOLATION => blob::missing("of a record"),
            code if is_unstorable(code) => AppendError::ReadOnly(rejection.text),
            _ => AppendError::Unavailable(rejection.text),
        },
    }
}

/// Returns the error of a write that may be repeated, so that an unknown outcome is no matter.
pub(super) fn repeatable(failure: QueryFailure) -> AppendError {
    match append(failure) {
        AppendError::Unknown(what) => AppendError::Unavailable(what),
        error => error,
    }
}

/// Returns the error of a read.
pub(super) fn read(failure: QueryFailure) -> ReadError {
    match failure {
        QueryFailure::NotSent(what) | QueryFailure::Lost(what) => ReadError::Unavailable(what),
        QueryFailure::Newer(what) => ReadError::Newer(what),
        QueryFailure::Unusable(what) => ReadError::Unusable(what),
        QueryFailure::Rejected(rejection) if is_unstorable(&rejection.code) => {
            ReadError::Unusable(format!("the database cannot answer: {}", rejection.text))
        }
        QueryFailure::Rejected(rejection) => ReadError::Unavailable(rejection.text),
    }
}

/// Returns the error for stored data that is not what was written.
pub(super) fn corrupt(at: raddle_core::Seq, what: impl Into<String>) -> ReadError {
    let what = what.into();
    ReadError::Corrupt { at, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(code: SqlState) -> QueryFailure {
        let text = "what the server says".to_owned();
        QueryFailure::Rejected(Rejection { code, text })
    }

    #[test]
    fn a_rejection_means_that_nothing_was_stored() {
        let text = || "what the server says".to_owned();
        for (code, expected, is_repeated, ends) in [
            (SqlState::DISK_FULL, AppendError::Full(text()), false, false),
            (
                SqlState::FOREIGN_KEY_VIOLATION,
                AppendError::NoBlob("of a record".to_owned()),
                false,
                false,
            ),
            (
                SqlState::T_R_SERIALIZATION_FAILURE,
                AppendError::Unavailable(text()),
                true,
                false,
            ),
            (
                SqlState::T_R_DEADLOCK_DETECTED,
                AppendError::Unavailable(text()),
                true,
                false,
            ),
            (
                SqlState::LOCK_NOT_AVAILABLE,
                AppendError::Unavailable(text()),
                false,
                false,
            ),
            (
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                AppendError::ReadOnly(text()),
                false,
                false,
            ),
            (
                SqlState::UNTRANSLATABLE_CHARACTER,
                AppendError::ReadOnly(text()),
                false,
                false,
            ),
            (
                SqlState::QUERY_CANCELED,
                AppendError::Unavailable(text()),
                false,
                false,
            ),
            (
                SqlState::READ_ONLY_SQL_TRANSACTION,
                AppendError::Unavailable(text()),
                false,
                true,
            ),
            (
                SqlState::ADMIN_SHUTDOWN,
                AppendError::Unavailable(text()),
                false,
                true,
            ),
        ] {
            let failure = rejected(code);
            assert_eq!(failure.is_serialization(), is_repeated, "{failure:?}");
            assert_eq!(failure.ends_connection(), ends, "{failure:?}");
            assert_eq!(append(failure), expected);
        }
    }

    #[test]
    fn codes_after_which_a_statement_may_be_committed() {
        for (code, expected) in [
            (SqlState::TRANSACTION_RESOLUTION_UNKNOWN, true),
            (SqlState::CONNECTION_FAILURE, true),
            (SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN, true),
            (SqlState::ADMIN_SHUTDOWN, false),
            (SqlState::DISK_FULL, false),
        ] {
            assert_eq!(is_unclear(&code), expected, "{code:?}");
        }
        let lost = append(QueryFailure::Lost("cut".to_owned()));
        assert_eq!(lost, AppendError::Unknown("cut".to_owned()));
    }
}
