//! What SQLite says, in the words of the ports.

use raddle_core::Seq;
use raddle_core::ports::{AppendError, ReadError};
use rusqlite::{Error, ErrorCode, ffi};

/// A file that cannot be opened.
pub(super) fn open(error: Error) -> ReadError {
    read(error, Seq::ZERO)
}

/// A read that failed, from this record on.
pub(super) fn read(error: Error, at: Seq) -> ReadError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ReadError::Corrupt {
            at,
            what: error.to_string(),
        },
        // A column that is not what the layout says was not written by us.
        None => ReadError::Corrupt {
            at,
            what: error.to_string(),
        },
        Some(_) => ReadError::Unavailable(error.to_string()),
    }
}

/// A write that failed before it was committed: it did not happen.
pub(super) fn write(error: &Error) -> AppendError {
    let text = error.to_string();
    if extended(error) == Some(ffi::SQLITE_IOERR_SHMSIZE) {
        // The shared index beside the log could not grow.
        return AppendError::Full(text);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => AppendError::Full(text),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            AppendError::ReadOnly(text)
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => {
            AppendError::ReadOnly(text)
        }
        Some(_) => AppendError::Unavailable(text),
    }
}

/// A commit that failed. Only where SQLite undid it for certain did it not happen.
pub(super) fn commit(error: &Error) -> AppendError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => write(error),
        _ => AppendError::Unknown(error.to_string()),
    }
}

fn extended(error: &Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}
