use std::path::Path;

use rusqlite::{Error, ffi};
use tempfile::TempDir;

use super::*;

fn book() -> (TempDir, WriteConn) {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = schema::open_or_create(folder.path()).expect("a journal");
    // A test that has to wait for another connection would wait for ever.
    connection
        .busy_timeout(std::time::Duration::ZERO)
        .expect("set");
    let book = WriteConn::new(folder.path().to_owned(), connection, Quarantine::default());
    (folder, book)
}

fn open(folder: &Path) -> Connection {
    Connection::open(folder.join(schema::FILE)).expect("a journal")
}

/// A row that stands for an append.
fn write(book: &mut WriteConn, at: i64, class: Class) -> Result<(), TransactionFailure> {
    book.begin(class)?;
    let (connection, _) = book.parts()?;
    connection
        .execute(
            "INSERT INTO item (at, before, sum) VALUES (?1, 0, x'')",
            [at],
        )
        .expect("room");
    book.commit(100)
}

fn rows(folder: &Path) -> Vec<i64> {
    let connection = open(folder);
    let mut rows = connection
        .prepare("SELECT at FROM item ORDER BY at")
        .expect("a table");
    let rows = rows.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("numbers")
}

fn sync_fails(_: &Connection) -> Result<(), Error> {
    Err(Error::SqliteFailure(
        ffi::Error::new(ffi::SQLITE_IOERR_FSYNC),
        None,
    ))
}

fn disk_is_full(_: &Connection) -> Result<(), Error> {
    Err(Error::SqliteFailure(
        ffi::Error::new(ffi::SQLITE_FULL),
        None,
    ))
}

fn log_bytes(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join(format!("{}-wal", schema::FILE))).expect("a log")
}

#[test]
fn what_a_commit_survives_does_not_hang_on_one_that_failed_before_it() {
    let (folder, mut book) = book();
    let level = |book: &mut WriteConn, class| {
        book.begin(class).expect("begun");
        let (connection, _) = book.parts().expect("open");
        let level: i64 = connection
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .expect("a level");
        book.roll_back();
        level
    };
    let (normal, full) = (1, 2);
    assert_eq!(level(&mut book, Class::Process), normal);
    let other = open(folder.path());
    for (busy, then) in [
        (Class::Power, Class::Power),
        (Class::Power, Class::Process),
        (Class::Process, Class::Power),
        (Class::Process, Class::Process),
    ] {
        other.execute("BEGIN IMMEDIATE", []).expect("begun");
        let failed = book.begin(busy).expect_err("another has it");
        assert!(matches!(failed.error, AppendError::Unavailable(_)));
        other.execute("ROLLBACK", []).expect("ended");
        let expected = if then == Class::Power { full } else { normal };
        assert_eq!(level(&mut book, then), expected, "{busy:?}, then {then:?}");
    }
}

#[test]
fn a_commit_whose_sync_failed_is_in_doubt_until_the_file_is_opened_again() {
    let (folder, mut book) = book();
    // Someone else has the file open, so that closing it does not empty the log.
    let _reader = open(folder.path());
    write(&mut book, 1, Class::Process).expect("stored");
    let before = log_bytes(folder.path());
    assert!(!before.is_empty());
    book.ops.commit = sync_fails;
    let failed = write(&mut book, 2, Class::Power).expect_err("not synced");
    assert!(matches!(failed.error, AppendError::Unknown(_)));
    assert!(book.doubt.load(Ordering::Acquire));
    // The connection is gone, and nothing was moved by letting it go.
    assert!(book.connection.is_none());
    assert_eq!(log_bytes(folder.path()), before);
    book.ops = LogOps::default();
    write(&mut book, 3, Class::Power).expect("stored");
    assert!(!book.doubt.load(Ordering::Acquire));
    assert_eq!(rows(folder.path()), [1, 3]);
}

#[test]
fn a_log_that_could_not_be_moved_is_made_whole_before_the_next_write() {
    let (folder, mut book) = book();
    let _reader = open(folder.path());
    write(&mut book, 1, Class::Process).expect("stored");
    book.ops.checkpoint = sync_fails;
    book.growth.add(1 << 20);
    book.checkpoint();
    assert!(book.connection.is_none());
    // What was stored is stored, so the head is known.
    assert!(!book.doubt.load(Ordering::Acquire));
    book.begin(Class::Process).expect("open again");
    book.roll_back();
    assert!(log_bytes(folder.path()).is_empty());
    assert_eq!(rows(folder.path()), [1]);
}

#[test]
fn a_full_disk_leaves_the_log_where_it_is() {
    let (folder, mut book) = book();
    write(&mut book, 1, Class::Process).expect("stored");
    book.ops.checkpoint = disk_is_full;
    book.growth.add(1 << 20);
    book.checkpoint();
    assert!(book.connection.is_some());
    book.ops.commit = disk_is_full;
    let failed = write(&mut book, 2, Class::Power).expect_err("no room");
    assert!(matches!(failed.error, AppendError::Full(_)));
    assert!(failed.by_one);
    book.ops = LogOps::default();
    write(&mut book, 3, Class::Power).expect("stored");
    assert_eq!(rows(folder.path()), [1, 3]);
}

#[test]
fn nothing_is_written_over_a_log_that_lost_pages() {
    let (folder, mut book) = book();
    let _reader = rows(folder.path());
    let reader = open(folder.path());
    write(&mut book, 1, Class::Process).expect("stored");
    reader
        .query_row("SELECT count(*) FROM item", [], |_| Ok(()))
        .expect("a count");
    book.drop_connection();
    let log = folder.path().join(format!("{}-wal", schema::FILE));
    let whole = log_bytes(folder.path());
    let mut lost = whole.clone();
    lost[100] ^= 1;
    std::fs::write(&log, &lost).expect("written");
    for _ in 0..2 {
        let failed = write(&mut book, 2, Class::Power).expect_err("a hole");
        assert!(matches!(failed.error, AppendError::Unavailable(_)));
    }
    std::fs::write(&log, &whole).expect("written");
    write(&mut book, 3, Class::Power).expect("stored");
    assert_eq!(rows(folder.path()), [1, 3]);
}

#[test]
fn a_log_is_moved_when_there_is_enough_of_it() {
    let (folder, mut book) = book();
    let _reader = open(folder.path());
    let text = "x".repeat(100 << 10);
    let size = || {
        let file = folder.path().join(schema::FILE);
        std::fs::metadata(file).expect("a file").len()
    };
    let before = size();
    for round in 0..80 {
        book.begin(Class::Process).expect("begun");
        let (connection, _) = book.parts().expect("open");
        connection
            .execute(
                "INSERT INTO turn (at, before, sum, id) VALUES (?1, 0, x'', ?2)",
                (round, &text),
            )
            .expect("room");
        book.commit(text.len()).expect("stored");
        book.checkpoint();
    }
    // It has 4 MiB at most, and what comes before it is looked at again.
    assert!(log_bytes(folder.path()).len() < 6 << 20);
    assert!(size() > before + (4 << 20));
}

#[test]
fn a_file_that_a_newer_process_brought_up_to_date_is_left_alone() {
    let (folder, mut book) = book();
    write(&mut book, 1, Class::Power).expect("stored");
    let other = open(folder.path());
    for what in ["user_version", "application_id"] {
        let now: i64 = other
            .pragma_query_value(None, what, |row| row.get(0))
            .expect("a number");
        other.pragma_update(None, what, now + 100).expect("set");
    }
    let failed = write(&mut book, 2, Class::Power).expect_err("newer");
    assert!(matches!(failed.error, AppendError::Newer(_)));
    assert!(failed.error.to_string().contains("upgrade"));
    // It is not held either.
    other.execute("BEGIN IMMEDIATE", []).expect("begun");
    other.execute("ROLLBACK", []).expect("ended");
    assert_eq!(rows(folder.path()), [1]);
}

#[test]
fn those_who_write_do_not_wait_for_one_who_reads_until_the_log_is_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = schema::open_or_create(folder.path()).expect("a journal");
    let mut book = WriteConn::new(folder.path().to_owned(), connection, Quarantine::default());
    write(&mut book, 1, Class::Process).expect("stored");
    let reader = open(folder.path());
    reader.execute_batch("BEGIN").expect("begun");
    let count = "SELECT count(*) FROM item";
    reader.query_row(count, [], |_| Ok(())).expect("a count");
    write(&mut book, 2, Class::Process).expect("stored");
    let begun = std::time::Instant::now();
    book.clear();
    book.checkpoint();
    assert!(begun.elapsed() < schema::BUSY_MAX / 2);
    assert!(!log_bytes(folder.path()).is_empty());
    // Nobody has to ask again, but not each write tries.
    reader.execute_batch("COMMIT").expect("ended");
    write(&mut book, 3, Class::Process).expect("stored");
    book.clear_at = book.clear_at.map(|at| at + CLEAR_PAUSE);
    book.checkpoint();
    assert!(!log_bytes(folder.path()).is_empty());
    book.clear_at = book.clear_at.map(|_| Instant::now());
    book.checkpoint();
    assert!(log_bytes(folder.path()).is_empty());
    assert_eq!(rows(folder.path()), [1, 2, 3]);
}
