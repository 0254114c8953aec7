//! What SQLite and the system say, in the words of the ports.

use std::io;

use raddle_core::Seq;
use raddle_core::ports::{AppendError, ReadError};
use rusqlite::{Error, ErrorCode, ffi};

/// A file that cannot be opened.
pub(super) fn open(error: Error) -> ReadError {
    read(error, Seq::ZERO)
}

/// A read that failed, from this record on.
pub(super) fn read(error: Error, at: Seq) -> ReadError {
    let what = error.to_string();
    if is_damage(&error) {
        ReadError::Corrupt { at, what }
    } else {
        ReadError::Unavailable(what)
    }
}

/// Whether something is not what was written, rather than that it cannot be had now.
pub(super) fn is_damage(error: &Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => true,
        // What we ask never changes, so the tables are not those that we made.
        Some(_) if extended(error) == Some(ffi::SQLITE_ERROR) => true,
        Some(_) => false,
        None => is_not_ours(error),
    }
}

/// Whether a row is not what the layout says, which we did not write.
fn is_not_ours(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::QueryReturnedNoRows
            | Error::QueryReturnedMoreThanOneRow
            | Error::InvalidColumnIndex(_)
            | Error::InvalidColumnName(_)
            | Error::InvalidColumnType(..)
            | Error::StatementChangedRows(_)
    )
}

/// A row that is not what was written, in SQLite's words for it.
pub(super) fn damaged(what: &str) -> Error {
    let corrupt = ffi::Error::new(ffi::SQLITE_CORRUPT);
    Error::SqliteFailure(corrupt, Some(what.to_owned()))
}

/// A write that failed before it was committed: it did not happen.
pub(super) fn write(error: &Error) -> AppendError {
    if let Error::ToSqlConversionFailure(inner) = error
        && let Some(inner) = inner.downcast_ref::<io::Error>()
    {
        return file_write(inner);
    }
    let text = error.to_string();
    if extended(error) == Some(ffi::SQLITE_IOERR_SHMSIZE) {
        // The shared index beside the log could not grow.
        return AppendError::Full(text);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => AppendError::Full(text),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => AppendError::ReadOnly(text),
        // What is damaged is not written to.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => AppendError::ReadOnly(text),
        Some(_) if extended(error) == Some(ffi::SQLITE_ERROR) => AppendError::ReadOnly(text),
        None if is_not_ours(error) => AppendError::ReadOnly(text),
        // Too many open files, a disk that does not answer, another process in the way: all of them pass.
        Some(_) | None => AppendError::Unavailable(text),
    }
}

/// A commit that failed. Only where SQLite undid it for certain did it not happen.
pub(super) fn commit(error: &Error) -> AppendError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => write(error),
        _ => AppendError::Unknown(error.to_string()),
    }
}

/// A file beside the journal could not be written.
pub(super) fn file_write(error: &io::Error) -> AppendError {
    let text = error.to_string();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => AppendError::Full(text),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            AppendError::ReadOnly(text)
        }
        _ => AppendError::Unavailable(text),
    }
}

/// An append to a file that another, newer process has brought up to date.
pub(super) fn not_readable(error: ReadError) -> AppendError {
    match error {
        ReadError::Unavailable(what) => AppendError::Unavailable(what),
        ReadError::Newer(what) => AppendError::Newer(what),
        error => AppendError::ReadOnly(error.to_string()),
    }
}

fn extended(error: &Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), Some("said by SQLite".to_owned()))
    }

    /// What a write is told, a commit, and a read.
    fn words(error: Error) -> String {
        let write = match write(&error) {
            AppendError::Conflict => "conflict",
            AppendError::Unavailable(_) => "unavailable",
            AppendError::Full(_) => "full",
            AppendError::ReadOnly(_) => "read-only",
            AppendError::NoBlob(_) => "no blob",
            AppendError::Newer(_) => "newer",
            AppendError::Unknown(_) => "unknown",
        };
        let commit = match commit(&error) {
            AppendError::Unknown(_) => "unknown",
            AppendError::Full(_) => "full",
            AppendError::Unavailable(_) => "unavailable",
            _ => "?",
        };
        let read = match read(error, Seq(7)) {
            ReadError::Corrupt { at: Seq(7), .. } => "corrupt",
            ReadError::Unavailable(_) => "unavailable",
            _ => "?",
        };
        format!("{write} {commit} {read}")
    }

    #[test]
    fn what_sqlite_says_is_told_apart() {
        let table = [
            (ffi::SQLITE_FULL, "full full unavailable"),
            (ffi::SQLITE_IOERR_SHMSIZE, "full unknown unavailable"),
            (ffi::SQLITE_BUSY, "unavailable unavailable unavailable"),
            (
                ffi::SQLITE_BUSY_SNAPSHOT,
                "unavailable unavailable unavailable",
            ),
            (ffi::SQLITE_LOCKED, "unavailable unknown unavailable"),
            (ffi::SQLITE_CANTOPEN, "unavailable unknown unavailable"),
            (ffi::SQLITE_IOERR, "unavailable unknown unavailable"),
            (ffi::SQLITE_IOERR_READ, "unavailable unknown unavailable"),
            (ffi::SQLITE_IOERR_WRITE, "unavailable unknown unavailable"),
            (ffi::SQLITE_IOERR_FSYNC, "unavailable unknown unavailable"),
            (ffi::SQLITE_IOERR_NOMEM, "unavailable unknown unavailable"),
            (ffi::SQLITE_NOMEM, "unavailable unknown unavailable"),
            (ffi::SQLITE_READONLY, "read-only unknown unavailable"),
            (
                ffi::SQLITE_READONLY_DIRECTORY,
                "read-only unknown unavailable",
            ),
            (ffi::SQLITE_PERM, "read-only unknown unavailable"),
            (ffi::SQLITE_CORRUPT, "read-only unknown corrupt"),
            (ffi::SQLITE_NOTADB, "read-only unknown corrupt"),
            (ffi::SQLITE_ERROR, "read-only unknown corrupt"),
        ];
        for (code, expected) in table {
            assert_eq!(words(failure(code)), expected, "{code}");
        }
    }

    #[test]
    fn what_the_system_says_is_told_apart() {
        use rustix::io::Errno;
        let table = [
            (Errno::NOSPC, "full"),
            (Errno::DQUOT, "full"),
            (Errno::ROFS, "read-only"),
            (Errno::ACCESS, "read-only"),
            (Errno::PERM, "read-only"),
            (Errno::MFILE, "unavailable"),
            (Errno::NFILE, "unavailable"),
            (Errno::IO, "unavailable"),
        ];
        for (code, expected) in table {
            let error = Error::ToSqlConversionFailure(Box::new(io::Error::from(code)));
            let words = words(error);
            let expected = format!("{expected} unknown unavailable");
            assert_eq!(words, expected, "{code}");
        }
    }

    #[test]
    fn a_row_that_we_did_not_write_is_damage() {
        let kind = rusqlite::types::Type::Text;
        let odd = Error::InvalidColumnType(0, "at".to_owned(), kind);
        assert_eq!(words(odd), "read-only unknown corrupt");
        assert_eq!(
            words(Error::StatementChangedRows(0)),
            "read-only unknown corrupt"
        );
    }
}
