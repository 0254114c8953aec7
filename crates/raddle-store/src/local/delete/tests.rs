#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, params};

use super::super::files::BlobFiles;
use super::super::rowid::key;
use super::super::schema;
use super::{mark, piece};

/// Returns the size of the WAL while nothing checkpoints it.
fn log_bytes(folder: &std::path::Path) -> u64 {
    let log = folder.join(format!("{}-wal", schema::FILE));
    std::fs::metadata(log).unwrap().len()
}

/// Creates a thread with 300 records of 60 KiB.
fn long_thread(connection: &Connection) -> ThreadId {
    let thread = ThreadId::mint();
    let mut row = super::fence::ThreadRow::new(thread);
    super::fence::begin(connection, thread, &mut row).unwrap();
    let number = row.number;
    for seq in 1..=300 {
        connection
            .execute(
                "INSERT INTO event (at, time, form, chain, body) VALUES (?1, 0, 0, x'00', ?2)",
                params![key(number, Seq(seq)), vec![7_u8; 60 << 10]],
            )
            .unwrap();
    }
    thread
}

#[test]
fn no_transaction_of_a_deletion_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let files = BlobFiles::new(folder.path());
    let connection = schema::open_or_create(folder.path()).unwrap();
    connection
        .pragma_update(None, "wal_autocheckpoint", 0)
        .unwrap();
    let thread = long_thread(&connection);
    let number = mark(&connection, &files, thread, None).unwrap().unwrap();
    let mut pieces = 0;
    loop {
        let before = log_bytes(folder.path());
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let step = piece(&connection, &files, number).unwrap();
        connection.execute_batch("COMMIT").unwrap();
        let written = log_bytes(folder.path()) - before;
        assert!(written < 3 << 19, "a piece wrote {written} bytes");
        pieces += 1;
        if step.done {
            break;
        }
    }
    assert!(pieces > 15, "18 MB went in {pieces} pieces");
    let remaining: i64 = connection
        .query_row("SELECT count(*) FROM event", [], |row| row.get(0))
        .unwrap();
    assert_eq!(remaining, 0);
}
