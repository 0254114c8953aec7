//! The SQLite file: opening, schema, and migrations.

use std::path::Path;
use std::time::Duration;

use raddle_core::ports::ReadError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{error, readonly};

/// Name of the file in its folder.
pub(super) const FILE: &str = "journal.sqlite";

/// Schema version that this build writes. A file with a higher one is rejected as a whole. A file
/// with a lower one is read as it is, and migrated by a process that may write.
const VERSION: i64 = 2;

/// First version with two indexes of turns.
pub(super) const TURNS_TWICE: i64 = 2;

/// Base of the file's application id, to which the schema version is added. So a single flipped bit
/// cannot change the version.
const MARK: i64 = 0x5261_6400;

/// Page size. It is small because an append changes two or three pages, and each is written whole
/// to the WAL.
pub(super) const PAGE_BYTES: u32 = 1024;

/// Maximum page cache of the writer, in KiB: the ends of a few thousand threads.
const CACHE_KIB: i32 = 8 << 10;

/// Timeout while another process writes.
pub(super) const BUSY_MAX: Duration = Duration::from_secs(5);

/// Migrations. Each step upgrades the file by one version, in its own transaction. A released step
/// never changes: `tests/it/layout` has a file of each version.
const STEPS: [&str; VERSION as usize] = [
    FIRST,
    "
    -- As with threads: what one index does not find, and the other does, has vanished from the one.
    CREATE INDEX turn_id_again ON turn (id);
",
];

const FIRST: &str = "
    -- Rows of a thread are keyed by its number and the record's, in one integer: see `key.rs`.
    CREATE TABLE thread (
        number   INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given again
        id       BLOB NOT NULL,
        head     INTEGER NOT NULL,            -- its newest event: half of the fence
        going    INTEGER NOT NULL DEFAULT 0,  -- a number that no flipped bit makes, once it is being deleted
        origin   BLOB,                        -- before its first event; nothing if its id says that
        turn     INTEGER NOT NULL,            -- the last record of each trail: see `trail.rs`
        turn_end INTEGER NOT NULL,
        item     INTEGER NOT NULL,
        cut      INTEGER NOT NULL,
        listed   BLOB,                        -- the checksum of its summary, if it has one
        sum      BLOB NOT NULL                -- over all the others
    ) STRICT;
    -- What decides whether a thread is found is there twice, each in pages of its own: an entry that
    -- vanished from one of them leaves no other mark.
    CREATE UNIQUE INDEX thread_id ON thread (id);
    CREATE INDEX thread_id_again ON thread (id);
    CREATE INDEX thread_going ON thread (number) WHERE going = 444250812007;
    -- What a fork took over: the rows of another number after the part before and up to a record.
    -- They stay when their own thread is deleted.
    CREATE TABLE part (
        number INTEGER NOT NULL,
        upto   INTEGER NOT NULL,
        taken  INTEGER NOT NULL,
        sum    BLOB NOT NULL,               -- over the others: a seam that moved would show foreign records
        PRIMARY KEY (number, upto)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX part_taken ON part (taken, upto);
    CREATE TABLE event (
        at    INTEGER PRIMARY KEY,
        time  INTEGER NOT NULL,
        form  INTEGER NOT NULL,
        chain BLOB NOT NULL,
        body  BLOB NOT NULL
    ) STRICT;
    -- Deltas are never shared: a fork has its own rows of those that it took over.
    CREATE TABLE delta (
        at     INTEGER PRIMARY KEY,
        time   INTEGER NOT NULL,
        item   TEXT NOT NULL,
        part   INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        sum    BLOB NOT NULL,
        text   TEXT NOT NULL
    ) STRICT;
    -- Deltas that are no longer needed and were too many to delete at once.
    CREATE TABLE leftover (at INTEGER PRIMARY KEY, item TEXT NOT NULL) STRICT;
    CREATE TABLE base (
        at      INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        sum     BLOB NOT NULL,
        body    BLOB NOT NULL
    ) STRICT;
    -- Which record names a blob, or has its body in that file.
    CREATE TABLE blob_use (
        hash BLOB NOT NULL,
        at   INTEGER NOT NULL,
        PRIMARY KEY (hash, at)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blob_use_at ON blob_use (at);
    -- Blobs that were put and not yet named, by who put them and how often.
    CREATE TABLE blob_put (
        hash    BLOB NOT NULL,
        session INTEGER NOT NULL,
        count   INTEGER NOT NULL,
        time    INTEGER NOT NULL,           -- of the last time
        PRIMARY KEY (hash, session)
    ) STRICT, WITHOUT ROWID;
    -- When files that nothing names were last looked for.
    CREATE TABLE swept (one INTEGER PRIMARY KEY CHECK (one = 1), time INTEGER NOT NULL) STRICT;

    -- What follows is made from the records and can be made again. It says where they are, and only
    -- lists have words of their own.
    CREATE TABLE summary (
        number     INTEGER PRIMARY KEY,
        id         BLOB NOT NULL,
        shelf      INTEGER NOT NULL,
        recency_at INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        turns      INTEGER NOT NULL,
        cwd        TEXT NOT NULL,
        provider   TEXT,
        source     TEXT NOT NULL,
        originator TEXT,
        name       TEXT,
        preview    TEXT NOT NULL,
        rest       TEXT NOT NULL            -- what no list is filtered or ordered by
    ) STRICT;
    -- What lists are filtered by stands behind what they are ordered by, so that a thread that is not wanted
    -- costs no look at its row.
    CREATE INDEX summary_recent ON summary (shelf, recency_at, id, source, provider, originator);
    CREATE INDEX summary_made ON summary (shelf, created_at, id, source, provider, originator);
    CREATE INDEX summary_changed ON summary (shelf, updated_at, id, source, provider, originator);
    CREATE INDEX summary_folder ON summary (shelf, cwd, recency_at, id);
    CREATE INDEX summary_folder_made ON summary (shelf, cwd, created_at, id);
    CREATE INDEX summary_folder_changed ON summary (shelf, cwd, updated_at, id);
    -- Trails: each row names the record of the one before it.
    CREATE TABLE turn (
        at     INTEGER PRIMARY KEY,
        before INTEGER NOT NULL,
        sum    BLOB NOT NULL,
        id     TEXT NOT NULL
    ) STRICT;
    CREATE INDEX turn_id ON turn (id);
    CREATE TABLE turn_end (
        at     INTEGER PRIMARY KEY,
        before INTEGER NOT NULL,
        sum    BLOB NOT NULL
    ) STRICT;
    CREATE TABLE item (
        at     INTEGER PRIMARY KEY,
        before INTEGER NOT NULL,
        sum    BLOB NOT NULL
    ) STRICT;
    -- Records that cut turns away, and the first record that each cut.
    CREATE TABLE cut (
        at     INTEGER PRIMARY KEY,
        before INTEGER NOT NULL,
        sum    BLOB NOT NULL,
        since  INTEGER NOT NULL
    ) STRICT;
";

/// Opens the file for writing. Creates it if it is missing, and migrates it if it is old.
///
/// The caller holds the folder's lock, because several processes may start on an empty folder at
/// once.
pub(super) fn open_or_create(folder: &Path) -> Result<Connection, ReadError> {
    let mut connection = open_to_write(folder).map_err(error::open)?;
    let layout = version(&connection).map_err(error::open)?;
    refuse_newer(layout)?;
    if layout < VERSION {
        migrate(&mut connection, layout).map_err(error::open)?;
        // The directory entry must survive a power loss too.
        let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| ReadError::Unavailable(error.to_string()))?;
    }
    Ok(connection)
}

/// Opens the file for writing, without a migration.
pub(super) fn open_to_write(folder: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(FILE), flags)?;
    connection.busy_timeout(BUSY_MAX)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    // The writer runs checkpoints itself, because SQLite would not report their failure.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // SQLite stores the undo data of a savepoint in pieces of a page. If it may spill to a file,
    // SQLite allocates and frees 64 KiB for it each time.
    connection.pragma_update(None, "temp_store", "memory")?;
    // Deleted content is overwritten: a deleted thread leaves no text behind.
    connection.pragma_update(None, "secure_delete", true)?;
    guard(&connection)?;
    Ok(connection)
}

/// Opens the file for reading only, also on a read-only disk.
pub(super) fn open_to_read(folder: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = readonly::open_to_read(folder, FILE)?;
    connection.set_prepared_statement_cache_capacity(64);
    guard(&connection)?;
    Ok(connection)
}

/// Hardens the connection against a manipulated or damaged file.
fn guard(connection: &Connection) -> Result<(), rusqlite::Error> {
    // A statement is planned once, and not again for each bound value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Rejects a file that a newer version wrote, or that has no schema yet.
pub(super) fn check_to_read(connection: &Connection) -> Result<(), ReadError> {
    check(connection, 1)
}

/// Rejects a file whose schema version is not the current one.
pub(super) fn check_to_write(connection: &Connection) -> Result<(), ReadError> {
    check(connection, VERSION)
}

fn check(connection: &Connection, oldest: i64) -> Result<(), ReadError> {
    let layout = version(connection).map_err(error::open)?;
    refuse_newer(layout)?;
    if layout < oldest {
        let what = format!(
            "it has the layout {layout} and needs {oldest}; start a server with write access to its folder, which migrates it"
        );
        return Err(ReadError::Unavailable(what));
    }
    Ok(())
}

fn refuse_newer(layout: i64) -> Result<(), ReadError> {
    if layout > VERSION {
        let what = format!("layout {layout}, and this version knows layouts up to {VERSION}");
        return Err(ReadError::Newer(what));
    }
    Ok(())
}

/// Returns the schema version of the file; zero before it has one.
pub(super) fn version(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let number = |sql: &str| -> Result<i64, rusqlite::Error> {
        connection
            .prepare_cached(sql)?
            .query_row([], |row| row.get(0))
    };
    let layout = number("PRAGMA user_version")?;
    let mark = number("PRAGMA application_id")?;
    if mark == 0 && layout == 1 {
        let what =
            "it was written before the first release and cannot be read; move the folder away";
        return Err(error::damaged(what));
    }
    let agree = mark == MARK + layout || (layout == 0 && mark == 0);
    agree
        .then_some(layout)
        .ok_or_else(|| error::damaged("the two layout numbers of the file differ"))
}

fn migrate(connection: &mut Connection, layout: i64) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "synchronous", "full")?;
    let done = usize::try_from(layout).unwrap_or(0);
    for (at, step) in STEPS.iter().enumerate().skip(done) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = (at + 1) as i64;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.pragma_update(None, "application_id", MARK + version)?;
        transaction.commit()?;
    }
    connection.pragma_update(None, "synchronous", "normal")
}
