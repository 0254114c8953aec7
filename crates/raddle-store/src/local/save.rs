//! Stores bases, and references to blob files.

use std::time::{Duration, SystemTime};

use raddle_core::ports::AppendError;
use raddle_core::{Base, Seq, ThreadId, Timestamp};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::chain;
use super::fence;
use super::files::BlobFiles;
use super::rowid::key;
use crate::blob::Hash;

/// Compression level of a base.
const LEVEL: i32 = 1;

/// A base to store.
#[derive(Debug)]
pub(super) struct SaveBase {
    thread: ThreadId,
    head: Seq,
    version: u32,
    body: Vec<u8>,
}

impl SaveBase {
    pub(super) fn new(thread: ThreadId, base: &Base) -> std::io::Result<Self> {
        let json = serde_json::to_vec(base)?;
        Ok(Self {
            thread,
            head: base.thread.head(),
            version: base.version,
            body: zstd::encode_all(json.as_slice(), LEVEL)?,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn run(&self, transaction: &Connection) -> Result<(), Error> {
        let row = fence::row(transaction, self.thread)?;
        let Some(row) = row.filter(|row| !row.deleting) else {
            return Ok(());
        };
        let sum = chain::sum_of_base(row.number, self.head, self.version, &self.body);
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO base (at, version, sum, body) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                key(row.number, self.head),
                self.version,
                sum,
                self.body
            ])?;
        Ok(())
    }
}

/// Limit: age of stored bytes that no record names; beyond it, they are deleted at the next
/// cleanup.
const UNNAMED_MAX: Duration = Duration::from_secs(60 * 60);

/// Reference to a blob that was stored before any record refers to it. It protects the file.
#[derive(Debug)]
pub(super) struct NoteBlob(pub(super) Hash);

impl NoteBlob {
    pub(super) fn run(
        &self,
        transaction: &Connection,
        files: &BlobFiles,
    ) -> Result<Result<(), AppendError>, Error> {
        if !files.holds(&self.0) {
            let what = "the file was deleted with another thread; put it again";
            return Ok(Err(AppendError::Unavailable(what.to_owned())));
        }
        transaction
            .prepare_cached(
                "INSERT INTO blob_put (hash, session, count, time) VALUES (?1, ?2, 1, ?3)
                 ON CONFLICT DO UPDATE SET count = count + 1, time = excluded.time",
            )?
            .execute(params![self.0, files.session(), millis(SystemTime::now())])?;
        Ok(Ok(()))
    }
}

/// Removes this session's reference to a stored blob, because a record now refers to it. References
/// of other sessions, and further ones of this session, stay.
pub(super) fn release_put(
    transaction: &Connection,
    files: &BlobFiles,
    hash: &Hash,
) -> Result<(), Error> {
    let key = params![hash, files.session()];
    let updated = transaction
        .prepare_cached(
            "UPDATE blob_put SET count = count - 1 WHERE hash = ?1 AND session = ?2 AND count > 1",
        )?
        .execute(key)?;
    if updated == 0 {
        transaction
            .prepare_cached("DELETE FROM blob_put WHERE hash = ?1 AND session = ?2")?
            .execute(key)?;
    }
    Ok(())
}

/// Whether a record refers to a blob, or a session has stored it and may still refer to it.
pub(super) fn is_referenced(connection: &Connection, hash: &Hash) -> Result<bool, Error> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM blob_use WHERE hash = ?1)
                 OR EXISTS (SELECT 1 FROM blob_put WHERE hash = ?1)",
        )?
        .query_row([hash], |row| row.get(0))
}

/// Removes the reference to a blob that was stored too long ago. Returns whether there was one.
pub(super) fn expire_put(transaction: &Connection, files: &BlobFiles) -> Result<bool, Error> {
    let cutoff = millis(SystemTime::now() - UNNAMED_MAX);
    let expired: Option<(Hash, i64)> = transaction
        .prepare_cached("SELECT hash, session FROM blob_put WHERE time < ?1 LIMIT 1")?
        .query_row([cutoff], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((hash, session)) = expired else {
        return Ok(false);
    };
    transaction
        .prepare_cached("DELETE FROM blob_put WHERE hash = ?1 AND session = ?2")?
        .execute(params![hash, session])?;
    remove_unreferenced(transaction, files, &hash)?;
    Ok(true)
}

/// Removes a file without references. This runs inside a transaction, and every new user of a file
/// checks for it inside another, so no file in use is removed.
pub(super) fn remove_unreferenced(
    transaction: &Connection,
    files: &BlobFiles,
    hash: &Hash,
) -> Result<(), Error> {
    if is_referenced(transaction, hash)? {
        return Ok(());
    }
    let failed = |error| Error::ToSqlConversionFailure(Box::new(error));
    files.remove(hash).map_err(failed)
}

/// Whether a sweep for unreferenced files is due. The caller that receives `true` must run it.
pub(super) fn is_sweep_due(transaction: &Connection) -> Result<bool, Error> {
    let now = SystemTime::now();
    let due = transaction
        .prepare_cached(
            "INSERT INTO swept (one, time) VALUES (1, ?1)
             ON CONFLICT DO UPDATE SET time = ?1 WHERE time NOT BETWEEN ?2 AND ?1",
        )?
        .execute([millis(now), millis(now - UNNAMED_MAX)])?;
    Ok(due == 1)
}

/// Sweeps one of the 256 blob directories: removes old files without references, which an
/// interrupted append or process left behind.
pub(super) fn sweep(
    transaction: &Connection,
    files: &BlobFiles,
    directory: u8,
) -> Result<(), Error> {
    let failed = |error| Error::ToSqlConversionFailure(Box::new(error));
    let old = files.old(directory, UNNAMED_MAX).map_err(failed)?;
    for hash in old {
        remove_unreferenced(transaction, files, &hash)?;
    }
    Ok(())
}

fn millis(time: SystemTime) -> i64 {
    Timestamp::from(time).0
}
