//! Bases, and the files that were put beside the journal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raddle_core::ports::AppendError;
use raddle_core::{Base, Seq, ThreadId};
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::chain;
use super::fence;
use super::files::BlobFiles;
use super::rowid::key;
use crate::blob::Hash;

/// How hard to compress a base.
const LEVEL: i32 = 1;

/// A base to keep.
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

/// How long a blob that was put may wait for a record that names it.
const UNNAMED_MAX: Duration = Duration::from_secs(60 * 60);

/// A file was put beside the journal; it is kept although no record names it yet.
#[derive(Debug)]
pub(super) struct NoteBlob(pub(super) Hash);

impl NoteBlob {
    pub(super) fn run(
        &self,
        transaction: &Connection,
        files: &BlobFiles,
    ) -> Result<Result<(), AppendError>, Error> {
        if !files.holds(&self.0) {
            let what = "the file was taken away with another thread";
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

/// A record names a blob, so whoever put it here waits for it no longer. Another process that has put
/// the same, or another thread of this one, still does.
pub(super) fn named(transaction: &Connection, files: &BlobFiles, hash: &Hash) -> Result<(), Error> {
    let key = params![hash, files.session()];
    let fewer = transaction
        .prepare_cached(
            "UPDATE blob_put SET count = count - 1 WHERE hash = ?1 AND session = ?2 AND count > 1",
        )?
        .execute(key)?;
    if fewer == 0 {
        transaction
            .prepare_cached("DELETE FROM blob_put WHERE hash = ?1 AND session = ?2")?
            .execute(key)?;
    }
    Ok(())
}

/// Whether a record names a blob, or someone has put it and may still name it.
pub(super) fn is_wanted(connection: &Connection, hash: &Hash) -> Result<bool, Error> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM blob_use WHERE hash = ?1)
                 OR EXISTS (SELECT 1 FROM blob_put WHERE hash = ?1)",
        )?
        .query_row([hash], |row| row.get(0))
}

/// Forgets a blob that was put too long ago, and says whether there was one.
pub(super) fn forget_unnamed(transaction: &Connection, files: &BlobFiles) -> Result<bool, Error> {
    let late = millis(SystemTime::now() - UNNAMED_MAX);
    let found: Option<(Hash, i64)> = transaction
        .prepare_cached("SELECT hash, session FROM blob_put WHERE time < ?1 LIMIT 1")?
        .query_row([late], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((hash, session)) = found else {
        return Ok(false);
    };
    transaction
        .prepare_cached("DELETE FROM blob_put WHERE hash = ?1 AND session = ?2")?
        .execute(params![hash, session])?;
    remove_unwanted(transaction, files, &hash)?;
    Ok(true)
}

/// Removes a file that nobody wants. It happens inside a transaction, and whoever begins to use a file
/// looks for it inside another, so that none goes that someone has come to rely on.
pub(super) fn remove_unwanted(
    transaction: &Connection,
    files: &BlobFiles,
    hash: &Hash,
) -> Result<(), Error> {
    if is_wanted(transaction, hash)? {
        return Ok(());
    }
    let failed = |error| Error::ToSqlConversionFailure(Box::new(error));
    files.remove(hash).map_err(failed)
}

/// Whether it is time to look for files that nothing names. Whoever hears *yes* does it.
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

/// Looks at some of the files, of 256 heaps, and removes those that are old and that nothing names: what
/// an append or a process that broke off has left behind.
pub(super) fn sweep(transaction: &Connection, files: &BlobFiles, heap: u8) -> Result<(), Error> {
    let failed = |error| Error::ToSqlConversionFailure(Box::new(error));
    let old = files.old(heap, UNNAMED_MAX).map_err(failed)?;
    for hash in old {
        remove_unwanted(transaction, files, &hash)?;
    }
    Ok(())
}

fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX))
}
