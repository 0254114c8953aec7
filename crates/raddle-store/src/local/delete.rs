//! A thread goes, piece by piece. Its row goes last, so that a deletion that was cut off is taken up again.

use raddle_core::ThreadId;
use rusqlite::{Connection, Error, OptionalExtension, params};

use super::fence;
use super::files::Files;
use super::key;
use crate::blob::Hash;

/// How many rows go in one transaction.
const ROWS_MAX: usize = 500;

/// Nobody can read or append from now on. Says which thread it is, if there is one.
pub(super) fn mark(transaction: &Connection, thread: ThreadId) -> Result<Option<i64>, Error> {
    let Some(row) = fence::row(transaction, thread)? else {
        return Ok(None);
    };
    transaction.execute(
        "UPDATE thread SET going = 1 WHERE number = ?1",
        [row.number],
    )?;
    transaction.execute("DELETE FROM summary WHERE number = ?1", [row.number])?;
    Ok(Some(row.number))
}

/// A thread whose deletion was cut off.
pub(super) fn going(connection: &Connection) -> Result<Option<i64>, Error> {
    connection
        .query_row(
            "SELECT number FROM thread WHERE going = 1 LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()
}

/// Deletes a piece, and says whether it was the last.
pub(super) fn piece(transaction: &Connection, files: &Files, number: i64) -> Result<bool, Error> {
    for table in ["delta", "leftover", "event", "base", "turn", "item", "cut"] {
        let sql = format!(
            "DELETE FROM {table} WHERE at IN
             (SELECT at FROM {table} WHERE at BETWEEN ?1 AND ?2 LIMIT ?3)"
        );
        let gone = transaction.prepare_cached(&sql)?.execute(params![
            key::first(number),
            key::last(number),
            ROWS_MAX as i64
        ])?;
        if gone == ROWS_MAX {
            return Ok(false);
        }
    }
    if !release_blobs(transaction, files, number)? {
        return Ok(false);
    }
    transaction.execute("DELETE FROM thread WHERE number = ?1", [number])?;
    Ok(true)
}

/// Removes files that only this thread uses. It happens inside the transaction, and whoever begins to
/// use a file looks for it inside another, so that no file goes that someone has come to rely on.
fn release_blobs(transaction: &Connection, files: &Files, number: i64) -> Result<bool, Error> {
    let mut statement =
        transaction.prepare_cached("SELECT hash FROM blob_use WHERE number = ?1 LIMIT ?2")?;
    let hashes: Vec<Hash> = statement
        .query_map(params![number, ROWS_MAX as i64], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for hash in &hashes {
        transaction
            .prepare_cached("DELETE FROM blob_use WHERE hash = ?1 AND number = ?2")?
            .execute(params![hash, number])?;
        let wanted: bool = transaction
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM blob_use WHERE hash = ?1)
                     OR EXISTS (SELECT 1 FROM blob_put WHERE hash = ?1)",
            )?
            .query_row([hash], |row| row.get(0))?;
        if !wanted {
            files
                .remove(hash)
                .map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))?;
        }
    }
    Ok(hashes.len() < ROWS_MAX)
}
