//! Blobs, as rows of the family of a thread. Bytes are shared within a family only, so a hash says
//! nothing about other threads.

use std::time::Duration;

use raddle_core::ports::{AppendError, ReadError};
use raddle_core::{Blob, Record, RecordBody, ThreadId};
use uuid::Uuid;

use super::SharedJournal;
use super::error;
use super::event_row;
use super::statement::Statement;
use super::thread_state::as_i64;
use crate::blob::{self, Hash};

/// Slowest transfer that is not given up.
const BYTES_PER_SECOND_MIN: u64 = 4 << 20;

/// Stores a blob for the family of a thread. The family of a missing thread is its own id.
pub(super) async fn put(
    journal: &SharedJournal,
    thread: ThreadId,
    bytes: Vec<u8>,
    media: String,
) -> Result<Blob, AppendError> {
    let hash = blob::hash(&bytes);
    let name = Blob {
        hash: blob::hex(&hash),
        bytes: bytes.len() as u64,
        media,
    };
    let limit = Duration::from_secs(8 + name.bytes / BYTES_PER_SECOND_MIN);
    let (form, body) = event_row::encode(bytes);
    let sql = "INSERT INTO blobs AS b (family, hash, form, body, waiting, put_at)
               VALUES (coalesce((SELECT family FROM threads WHERE id = $1), $1), $2, $3, $4, 1,
                   now())
               ON CONFLICT (family, hash) DO UPDATE SET waiting = b.waiting + 1, put_at = now()";
    let connection = journal.connections.blobs();
    let hash = hash.as_slice();
    let stored = connection
        .query_within(limit, sql, &[thread.as_uuid(), &hash, &form, &body])
        .await;
    stored.map_err(error::repeatable)?;
    Ok(name)
}

/// Returns the bytes of a blob of a thread's family.
pub(super) async fn get(
    journal: &SharedJournal,
    thread: ThreadId,
    blob: Blob,
) -> Result<Vec<u8>, ReadError> {
    let hash = blob::parse(&blob.hash).ok_or(ReadError::NotFound)?;
    let limit = Duration::from_secs(8 + blob.bytes / BYTES_PER_SECOND_MIN);
    let sql = "SELECT form, body FROM blobs
               WHERE hash = $2
                   AND family IN ($1, (SELECT family FROM threads WHERE id = $1)) LIMIT 1";
    let connection = journal.connections.blobs();
    let rows = connection
        .query_within(limit, sql, &[thread.as_uuid(), &hash.as_slice()])
        .await;
    let rows = rows.map_err(error::read)?;
    let row = rows.first().ok_or(ReadError::NotFound)?;
    let bytes = event_row::decode(row.get(0), row.get(1))?;
    let intact = bytes.filter(|bytes| blob::hash(bytes) == hash);
    intact.ok_or_else(|| {
        let what = format!("the blob {} is not what was stored", blob.hash);
        error::corrupt(raddle_core::Seq::ZERO, what)
    })
}

/// Blobs that the records of an append name, as columns.
#[derive(Debug, Default)]
pub(super) struct BlobUses {
    family: Vec<Uuid>,
    hash: Vec<Vec<u8>>,
    seq: Vec<i64>,
}

/// Looks up the blobs that records name. A foreign key rejects the append if one vanishes before it
/// runs.
pub(super) async fn uses_of(
    journal: &SharedJournal,
    thread: ThreadId,
    family: Uuid,
    records: &[Record],
) -> Result<BlobUses, AppendError> {
    let mut named: Vec<(Hash, i64)> = Vec::new();
    for record in records {
        let RecordBody::Event(event) = &record.body else {
            continue;
        };
        for name in blob::named(event) {
            let malformed = || blob::missing(&format!("{:?}", name.hash));
            let hash = blob::parse(&name.hash).ok_or_else(malformed)?;
            named.push((hash, as_i64(record.seq)));
        }
    }
    let mut uses = BlobUses::default();
    if named.is_empty() {
        return Ok(uses);
    }
    let families = [family, *thread.as_uuid()].to_vec();
    let hashes: Vec<&[u8]> = named.iter().map(|(hash, _)| hash.as_slice()).collect();
    let sql = "SELECT family, hash FROM blobs WHERE family = ANY ($1) AND hash = ANY ($2)";
    let rows = journal
        .connections
        .reads()
        .query(sql, &[&families, &hashes])
        .await;
    let rows = rows.map_err(error::repeatable)?;
    for (hash, seq) in &named {
        let found = rows.iter().find(|row| row.get::<_, &[u8]>(1) == hash);
        let row = found.ok_or_else(|| blob::missing(&blob::hex(hash)))?;
        uses.family.push(row.get(0));
        uses.hash.push(hash.to_vec());
        uses.seq.push(*seq);
    }
    Ok(uses)
}

impl BlobUses {
    /// Adds the uses to the statement of an append.
    pub(super) fn write<'a>(&'a self, statement: &mut Statement<'a>) {
        if self.seq.is_empty() {
            return;
        }
        let (family, hash) = (statement.bind(&self.family), statement.bind(&self.hash));
        let seq = statement.bind(&self.seq);
        statement.push(&format!(
            ", uses AS (INSERT INTO blob_uses (family, hash, log, seq)
                 SELECT it.family, it.hash, moved.log, it.seq FROM moved,
                     unnest({family}::uuid[], {hash}::bytea[], {seq}::bigint[])
                     AS it(family, hash, seq)
                 ON CONFLICT DO NOTHING),
             named AS (UPDATE blobs SET waiting = greatest(blobs.waiting - 1, 0)
                 FROM moved, (SELECT DISTINCT family, hash
                     FROM unnest({family}::uuid[], {hash}::bytea[]) AS it(family, hash)) AS it
                 WHERE blobs.family = it.family AND blobs.hash = it.hash)"
        ));
    }
}
