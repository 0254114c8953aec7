//! Maps errors of SQLite and the operating system to the errors of the ports.

use std::io;
use std::path::Path;

use raddle_core::Seq;
use raddle_core::ports::{AppendError, ReadError};
use rusqlite::{Error, ErrorCode, ffi};

/// Maps an error of opening a file.
pub(super) fn open(error: Error) -> ReadError {
    read(error, Seq::ZERO)
}

/// Maps an error of creating or opening the folder of a journal.
pub(super) fn folder(folder: &Path, error: &io::Error) -> ReadError {
    let is_lasting = matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotFound
    );
    let what = format!("threads cannot be stored in {}: {error}", folder.display());
    match is_lasting {
        true => ReadError::Unusable(what),
        false => ReadError::Unavailable(what),
    }
}

/// Maps an error of reading, from this record on.
pub(super) fn read(error: Error, at: Seq) -> ReadError {
    let what = error.to_string();
    if is_damage(&error) {
        ReadError::Corrupt { at, what }
    } else {
        ReadError::Unavailable(what)
    }
}

/// Whether stored data differs from what was written, as opposed to being unavailable now.
pub(super) fn is_damage(error: &Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => true,
        // Our queries never change, so the tables are not those that we created.
        Some(_) if extended(error) == Some(ffi::SQLITE_ERROR) => true,
        Some(_) => false,
        None => is_not_ours(error),
    }
}

/// Whether a row violates the schema, so that we cannot have written it.
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

/// Returns SQLite's corruption error for a row that differs from what was written.
pub(super) fn damaged(what: &str) -> Error {
    let corrupt = ffi::Error::new(ffi::SQLITE_CORRUPT);
    Error::SqliteFailure(corrupt, Some(what.to_owned()))
}

/// Maps an error of a write before its commit: the write did not happen.
pub(super) fn write(error: &Error) -> AppendError {
    if let Error::ToSqlConversionFailure(inner) = error
        && let Some(inner) = inner.downcast_ref::<io::Error>()
    {
        return file_write(inner);
    }
    let text = error.to_string();
    if extended(error) == Some(ffi::SQLITE_IOERR_SHMSIZE) {
        // The shared-memory index of the WAL could not grow.
        return AppendError::Full(text);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => AppendError::Full(text),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => AppendError::ReadOnly(text),
        // A damaged file is not written to.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => AppendError::ReadOnly(text),
        Some(_) if extended(error) == Some(ffi::SQLITE_ERROR) => AppendError::ReadOnly(text),
        None if is_not_ours(error) => AppendError::ReadOnly(text),
        // Too many open files, a stalled disk, another process: all of them are temporary.
        Some(_) | None => AppendError::Unavailable(text),
    }
}

/// Maps an error of a commit. The write did not happen only if SQLite certainly rolled it back.
pub(super) fn commit(error: &Error) -> AppendError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => write(error),
        _ => AppendError::Unknown(error.to_string()),
    }
}

/// Maps an error of writing a file in the journal's folder.
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

/// Maps the error of an append to a file that a newer process has migrated.
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
        Error::SqliteFailure(ffi::Error::new(code), Some("from SQLite".to_owned()))
    }

    /// Returns the results of a write, a commit, and a read that fail with the error.
    fn classify(error: Error) -> String {
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
    fn sqlite_errors_map_to_distinct_port_errors() {
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
            assert_eq!(classify(failure(code)), expected, "{code}");
        }
    }

    #[test]
    fn os_errors_map_to_distinct_port_errors() {
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
            let classes = classify(error);
            let expected = format!("{expected} unknown unavailable");
            assert_eq!(classes, expected, "{code}");
        }
    }

    #[test]
    fn a_row_of_unexpected_shape_is_damage() {
        let kind = rusqlite::types::Type::Text;
        let mismatch = Error::InvalidColumnType(0, "at".to_owned(), kind);
        assert_eq!(classify(mismatch), "read-only unknown corrupt");
        assert_eq!(
            classify(Error::StatementChangedRows(0)),
            "read-only unknown corrupt"
        );
    }
}
