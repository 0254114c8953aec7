//! Read-only folders: detecting them, and reading their journal.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::schema::FILE;

/// Timeout while another process writes.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// Characters of a path that are escaped in SQLite's URI.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.');

/// Returns the reason why a folder's journal is read-only; `None` if it is writable or does not
/// exist.
pub(super) fn readonly_reason(folder: &Path) -> Option<String> {
    let file = folder.join(FILE);
    let exists = file.exists();
    exists.then(|| unwritable_reason(folder, &file)).flatten()
}

/// Returns the reason why a file, or one of SQLite's files next to it, cannot be written.
fn unwritable_reason(folder: &Path, file: &Path) -> Option<String> {
    let paths = [folder, file, &log(file), &sibling(file, "-shm")].map(Path::to_owned);
    paths.into_iter().find_map(|path| {
        let errno = access(&path, Access::WRITE_OK).err()?;
        let denied = matches!(errno, Errno::ROFS | Errno::ACCESS | Errno::PERM);
        denied.then(|| {
            let shown = path.display();
            format!("this user may not write {shown}: {errno}; change its owner or mode")
        })
    })
}

/// Opens a file of a folder for reading only, also on a read-only disk.
pub(super) fn open_to_read(folder: &Path, name: &str) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = folder.join(name);
    let connection = Connection::open_with_flags(&file, flags)?;
    connection.busy_timeout(BUSY_MAX)?;
    // SQLite opens a file when it first reads from it.
    let read = connection.pragma_query_value(None, "user_version", |_| Ok(()));
    let Err(error) = read else {
        return Ok(connection);
    };
    let needs_files = matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
    );
    // SQLite needs files next to this one that it cannot create. Without a WAL they are not needed.
    let at_rest = fs::metadata(log(&file)).map_or(true, |log| log.len() == 0);
    if needs_files && at_rest && unwritable_reason(folder, &file).is_some() {
        let flags = flags | OpenFlags::SQLITE_OPEN_URI;
        return Connection::open_with_flags(address(&file), flags);
    }
    Err(error)
}

/// Returns a path as SQLite's URI of an immutable file.
fn address(path: &Path) -> String {
    let path = percent_encode(path.as_os_str().as_bytes(), ESCAPED);
    format!("file:{path}?immutable=1")
}

/// Stamp that changes with the journal, for files whose changes SQLite cannot detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalStamp {
    file: Option<(u64, u64, i64, i64)>,
    log: Option<u64>,
}

impl JournalStamp {
    pub(super) fn of(folder: &Path) -> Self {
        let file = fs::metadata(folder.join(FILE)).ok();
        let log = fs::metadata(log(&folder.join(FILE))).ok();
        Self {
            file: file.map(|it| (it.ino(), it.len(), it.mtime(), it.mtime_nsec())),
            log: log.map(|it| it.len()),
        }
    }
}

fn log(file: &Path) -> PathBuf {
    sibling(file, "-wal")
}

fn sibling(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_escapes_the_path() {
        let path = Path::new("/a b/c?d#e%f/ü.sqlite");
        let expected = "file:/a%20b/c%3Fd%23e%25f/%C3%BC.sqlite?immutable=1";
        assert_eq!(address(path), expected);
    }
}
