//! Bases, and the files that were put beside the journal.

use std::time::{SystemTime, UNIX_EPOCH};

use raddle_core::ports::AppendError;
use raddle_core::{Base, Seq, ThreadId};
use rusqlite::{Connection, Error, params};

use super::chain;
use super::fence;
use super::files::Files;
use super::key::key;
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
        let Some(row) = row.filter(|row| !row.going) else {
            return Ok(());
        };
        let sum = chain::sum_of_base(self.thread, self.head, &self.body);
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

/// A file was put beside the journal; it is kept although no record names it yet.
#[derive(Debug)]
pub(super) struct NoteBlob(pub(super) Hash);

impl NoteBlob {
    pub(super) fn run(
        &self,
        transaction: &Connection,
        files: &Files,
    ) -> Result<Result<(), AppendError>, Error> {
        if !files.holds(&self.0) {
            let what = "the file was taken away with another thread";
            return Ok(Err(AppendError::Unavailable(what.to_owned())));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        transaction
            .prepare_cached("INSERT OR REPLACE INTO blob_put (hash, time) VALUES (?1, ?2)")?
            .execute(params![self.0, now])?;
        Ok(Ok(()))
    }
}
