use std::path::Path;

use rusqlite::{Error, ffi};
use tempfile::TempDir;

use super::*;

fn open_conn() -> (TempDir, WriteConn) {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = schema::open_or_create(folder.path()).expect("a journal");
    // A test that waits for another connection would never end.
    connection
        .busy_timeout(std::time::Duration::ZERO)
        .expect("set");
    let conn = WriteConn::new(folder.path().to_owned(), connection, Quarantine::default());
    (folder, conn)
}

fn open(folder: &Path) -> Connection {
    Connection::open(folder.join(schema::FILE)).expect("a journal")
}

/// Inserts a row that stands for an append.
fn write(conn: &mut WriteConn, at: i64, class: Class) -> Result<(), TransactionFailure> {
    conn.begin(class)?;
    let (connection, _) = conn.parts()?;
    connection
        .execute(
            "INSERT INTO item (at, before, sum) VALUES (?1, 0, x'')",
            [at],
        )
        .expect("capacity");
    conn.commit(100)
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
fn durability_does_not_depend_on_an_earlier_failed_begin() {
    let (folder, mut conn) = open_conn();
    let level = |conn: &mut WriteConn, class| {
        conn.begin(class).expect("begun");
        let (connection, _) = conn.parts().expect("open");
        let level: i64 = connection
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .expect("a level");
        conn.roll_back();
        level
    };
    let (normal, full) = (1, 2);
    assert_eq!(level(&mut conn, Class::Process), normal);
    let other = open(folder.path());
    for (busy, then) in [
        (Class::Power, Class::Power),
        (Class::Power, Class::Process),
        (Class::Process, Class::Power),
        (Class::Process, Class::Process),
    ] {
        other.execute("BEGIN IMMEDIATE", []).expect("begun");
        let failed = conn.begin(busy).expect_err("another has it");
        assert!(matches!(failed.error, AppendError::Unavailable(_)));
        other.execute("ROLLBACK", []).expect("ended");
        let expected = if then == Class::Power { full } else { normal };
        assert_eq!(level(&mut conn, then), expected, "{busy:?}, then {then:?}");
    }
}

#[test]
fn a_commit_whose_sync_failed_is_in_doubt_until_the_file_is_opened_again() {
    let (folder, mut conn) = open_conn();
    // Another connection has the file open, so closing this one does not empty the WAL.
    let _reader = open(folder.path());
    write(&mut conn, 1, Class::Process).expect("stored");
    let before = log_bytes(folder.path());
    assert!(!before.is_empty());
    conn.ops.commit = sync_fails;
    let failed = write(&mut conn, 2, Class::Power).expect_err("not synced");
    assert!(matches!(failed.error, AppendError::Unknown(_)));
    assert!(conn.doubt.load(Ordering::Acquire));
    // The connection is dropped, and that ran no checkpoint.
    assert!(conn.connection.is_none());
    assert_eq!(log_bytes(folder.path()), before);
    conn.ops = LogOps::default();
    write(&mut conn, 3, Class::Power).expect("stored");
    assert!(!conn.doubt.load(Ordering::Acquire));
    assert_eq!(rows(folder.path()), [1, 3]);
}

#[test]
fn a_failed_checkpoint_is_repaired_before_the_next_write() {
    let (folder, mut conn) = open_conn();
    let _reader = open(folder.path());
    write(&mut conn, 1, Class::Process).expect("stored");
    conn.ops.checkpoint = sync_fails;
    conn.growth.add(1 << 20);
    conn.checkpoint();
    assert!(conn.connection.is_none());
    // The commit succeeded, so the head is known.
    assert!(!conn.doubt.load(Ordering::Acquire));
    conn.begin(Class::Process).expect("open again");
    conn.roll_back();
    assert!(log_bytes(folder.path()).is_empty());
    assert_eq!(rows(folder.path()), [1]);
}

#[test]
fn a_full_disk_preserves_the_log() {
    let (folder, mut conn) = open_conn();
    write(&mut conn, 1, Class::Process).expect("stored");
    conn.ops.checkpoint = disk_is_full;
    conn.growth.add(1 << 20);
    conn.checkpoint();
    assert!(conn.connection.is_some());
    conn.ops.commit = disk_is_full;
    let failed = write(&mut conn, 2, Class::Power).expect_err("no room");
    assert!(matches!(failed.error, AppendError::Full(_)));
    assert!(failed.by_one);
    conn.ops = LogOps::default();
    write(&mut conn, 3, Class::Power).expect("stored");
    assert_eq!(rows(folder.path()), [1, 3]);
}

#[test]
fn nothing_is_written_over_a_log_that_lost_pages() {
    let (folder, mut conn) = open_conn();
    let _reader = rows(folder.path());
    let reader = open(folder.path());
    write(&mut conn, 1, Class::Process).expect("stored");
    reader
        .query_row("SELECT count(*) FROM item", [], |_| Ok(()))
        .expect("a count");
    conn.drop_connection();
    let log = folder.path().join(format!("{}-wal", schema::FILE));
    let whole = log_bytes(folder.path());
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    std::fs::write(&log, &damaged).expect("written");
    for _ in 0..2 {
        let failed = write(&mut conn, 2, Class::Power).expect_err("a hole");
        assert!(matches!(failed.error, AppendError::Unavailable(_)));
    }
    std::fs::write(&log, &whole).expect("written");
    write(&mut conn, 3, Class::Power).expect("stored");
    assert_eq!(rows(folder.path()), [1, 3]);
}

#[test]
fn a_long_log_is_checkpointed() {
    let (folder, mut conn) = open_conn();
    let _reader = open(folder.path());
    let text = "x".repeat(100 << 10);
    let size = || {
        let file = folder.path().join(schema::FILE);
        std::fs::metadata(file).expect("a file").len()
    };
    let before = size();
    for round in 0..80 {
        conn.begin(Class::Process).expect("begun");
        let (connection, _) = conn.parts().expect("open");
        connection
            .execute(
                "INSERT INTO turn (at, before, sum, id) VALUES (?1, 0, x'', ?2)",
                (round, &text),
            )
            .expect("capacity");
        conn.commit(text.len()).expect("stored");
        conn.checkpoint();
    }
    // The WAL holds at most 4 MiB, and the bytes added before the next check.
    assert!(log_bytes(folder.path()).len() < 6 << 20);
    assert!(size() > before + (4 << 20));
}

#[test]
fn a_file_migrated_by_a_newer_process_is_not_written() {
    let (folder, mut conn) = open_conn();
    write(&mut conn, 1, Class::Power).expect("stored");
    let other = open(folder.path());
    for what in ["user_version", "application_id"] {
        let now: i64 = other
            .pragma_query_value(None, what, |row| row.get(0))
            .expect("a number");
        other.pragma_update(None, what, now + 100).expect("set");
    }
    let failed = write(&mut conn, 2, Class::Power).expect_err("newer");
    assert!(matches!(failed.error, AppendError::Newer(_)));
    assert!(failed.error.to_string().contains("upgrade"));
    // The failed write holds no lock either.
    other.execute("BEGIN IMMEDIATE", []).expect("begun");
    other.execute("ROLLBACK", []).expect("ended");
    assert_eq!(rows(folder.path()), [1]);
}

#[test]
fn writers_do_not_wait_for_a_reader_to_empty_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = schema::open_or_create(folder.path()).expect("a journal");
    let mut conn = WriteConn::new(folder.path().to_owned(), connection, Quarantine::default());
    write(&mut conn, 1, Class::Process).expect("stored");
    let reader = open(folder.path());
    reader.execute_batch("BEGIN").expect("begun");
    let count = "SELECT count(*) FROM item";
    reader.query_row(count, [], |_| Ok(())).expect("a count");
    write(&mut conn, 2, Class::Process).expect("stored");
    let start = std::time::Instant::now();
    conn.clear();
    conn.checkpoint();
    assert!(start.elapsed() < schema::BUSY_MAX / 2);
    assert!(!log_bytes(folder.path()).is_empty());
    // The clearing is retried without a request, but not by each write.
    reader.execute_batch("COMMIT").expect("ended");
    write(&mut conn, 3, Class::Process).expect("stored");
    conn.clear_at = conn.clear_at.map(|at| at + CLEAR_PAUSE);
    conn.checkpoint();
    assert!(!log_bytes(folder.path()).is_empty());
    conn.clear_at = conn.clear_at.map(|_| Instant::now());
    conn.checkpoint();
    assert!(log_bytes(folder.path()).is_empty());
    assert_eq!(rows(folder.path()), [1, 2, 3]);
}
