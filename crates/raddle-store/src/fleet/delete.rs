//! Deletes threads. The id is free at once; rows are removed after that, in pieces. An interrupted
//! removal is resumed by the next deletion of any node.
//!
//! Rows that forks share stay: they are removed with the last thread that uses them.

use raddle_core::ports::AppendError;
use raddle_core::{Event, Seq, ThreadId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::connections::Transaction;
use super::error::{self, QueryFailure};
use super::event_row;
use super::segments::OF_T;
use super::thread_state::{self, as_i64, seq};
use crate::records::is_deletion;

/// Approximate maximum number of rows that one statement removes.
const ROWS_MAX: i64 = 2000;

/// Maximum number of blocks of text that one statement removes.
const BLOCKS_MAX: i64 = 100;

/// Maximum number of logs that one deletion clears: its own, those whose last fork it was, and those
/// that another deletion left.
const LOGS_MAX: usize = 64;

/// Maximum number of attempts while other nodes take the thread or settle a doubt.
const ATTEMPTS_MAX: usize = 5;

/// Row of a thread to delete. A deletion names all of it, so one that is late has no effect on a
/// thread that another node took, or that began anew under the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DoomedRow {
    log: Uuid,
    fence: i64,
    /// Newest record, if the deletion depends on it.
    head: Option<i64>,
}

/// Deletes a thread, if it exists.
pub(super) async fn delete(journal: &SharedJournal, thread: ThreadId) -> Result<(), AppendError> {
    settle_doubt(journal, thread).await?;
    let mut first = None;
    for _ in 0..ATTEMPTS_MAX {
        let found = find(journal, thread).await.map_err(error::repeatable)?;
        let Some(row) = found.filter(|row| *first.get_or_insert(row.log) == row.log) else {
            // It does not exist, or what exists began after the deletion.
            return Ok(());
        };
        if remove(journal, thread, row).await? {
            return Ok(());
        }
    }
    let what = "other nodes take the thread again and again".to_owned();
    Err(AppendError::Unavailable(what))
}

/// Deletes a thread if its newest record has a number and marks the deletion.
pub(super) async fn forget(
    journal: &SharedJournal,
    thread: ThreadId,
    head: Seq,
) -> Result<(), AppendError> {
    settle_doubt(journal, thread).await?;
    for _ in 0..ATTEMPTS_MAX {
        let deleted = find_deleted(journal, thread, head).await;
        let Some(row) = deleted.map_err(error::repeatable)? else {
            return Ok(());
        };
        if remove(journal, thread, row).await? {
            return Ok(());
        }
    }
    let what = "other nodes take the thread again and again".to_owned();
    Err(AppendError::Unavailable(what))
}

/// Settles a doubt about a thread. A write that is still on its way would make it appear after the
/// deletion.
async fn settle_doubt(journal: &SharedJournal, thread: ThreadId) -> Result<(), AppendError> {
    if journal.threads.is_in_doubt(thread) {
        let settled = thread_state::settle(journal, thread).await;
        settled.map_err(error::repeatable)?;
    }
    Ok(())
}

/// Reads the row of a thread.
async fn find(
    journal: &SharedJournal,
    thread: ThreadId,
) -> Result<Option<DoomedRow>, QueryFailure> {
    let sql = "SELECT log, fence FROM threads WHERE id = $1 AND live";
    let connection = journal.connections.reads();
    let rows = connection.query(sql, &[thread.as_uuid()]).await?;
    Ok(rows.first().map(|row| DoomedRow {
        log: row.get(0),
        fence: row.get(1),
        head: None,
    }))
}

/// Removes the row of a thread. Returns false if it has changed.
async fn remove(
    journal: &SharedJournal,
    thread: ThreadId,
    row: DoomedRow,
) -> Result<bool, AppendError> {
    // A fork locks the row of the thread that it shares, so either it is first, and its parts are
    // visible to the removal of the rows, or it finds no thread.
    let sql = "WITH gone AS (
                   DELETE FROM threads WHERE id = $1 AND live AND log = $2 AND fence = $3
                       AND ($4::bigint IS NULL OR head = $4)
                   RETURNING log),
               unlisted AS (DELETE FROM summaries USING gone WHERE id = $1)
               INSERT INTO removals (id, log) SELECT $5::uuid, log FROM gone RETURNING 1";
    let connection = journal.connections.events(thread);
    let removal = Uuid::now_v7();
    let write = journal.threads.writing(thread);
    let removed = connection
        .query(
            sql,
            &[thread.as_uuid(), &row.log, &row.fence, &row.head, &removal],
        )
        .await;
    if !matches!(removed, Err(QueryFailure::Lost(_))) {
        write.conclude();
    }
    journal.threads.remove(thread);
    if removed.map_err(error::append)?.is_empty() {
        return Ok(false);
    }
    journal.node_log.forget(thread);
    // The thread is gone. What follows frees space, and the next deletion resumes it.
    clear(journal).await;
    Ok(true)
}

/// Returns the row of a thread whose newest record has a number and marks its deletion.
async fn find_deleted(
    journal: &SharedJournal,
    thread: ThreadId,
    head: Seq,
) -> Result<Option<DoomedRow>, QueryFailure> {
    let sql = format!(
        "WITH t AS (SELECT log, fence FROM threads
             WHERE id = $1 AND live AND head = $2 AND tail = $2),
         segment AS ({OF_T})
         SELECT t.log, it.seq, it.form, it.body, t.fence FROM t, segment JOIN LATERAL (
             SELECT seq, form, body FROM records
             WHERE log = segment.log AND seq BETWEEN segment.first AND segment.upto
             ORDER BY seq DESC LIMIT 32) AS it ON true
         ORDER BY it.seq DESC LIMIT 32"
    );
    let connection = journal.connections.reads();
    let rows = connection
        .query(&sql, &[thread.as_uuid(), &as_i64(head)])
        .await?;
    // An event that cannot be read marks no deletion.
    let event = |row: &Row| -> Option<Event> {
        event_row::event(seq(row.get(1)), row.get(2), row.get(3)).ok()
    };
    for row in &rows {
        match event(row).as_ref().map(is_deletion) {
            Some(None) => {}
            Some(Some(true)) => {
                return Ok(Some(DoomedRow {
                    log: row.get(0),
                    fence: row.get(4),
                    head: Some(as_i64(head)),
                }));
            }
            Some(Some(false)) | None => return Ok(None),
        }
    }
    Ok(None)
}

/// Removes the rows of logs that are no longer needed, oldest first. What fails is left for later,
/// and delays nothing else.
async fn clear(journal: &SharedJournal) {
    let later = |failure: QueryFailure| {
        tracing::warn!(?failure, "rows of deleted threads are removed later");
    };
    if let Err(failure) = expire_blobs(journal).await {
        later(failure);
    }
    let mut after = Uuid::nil();
    for _ in 0..LOGS_MAX {
        match next_removal(journal, after).await {
            Ok(Some(removal)) => {
                after = removal;
                match clear_log(journal, removal).await {
                    Ok(()) => {}
                    Err(failure @ QueryFailure::Rejected(_)) => later(failure),
                    Err(failure) => return later(failure),
                }
            }
            Ok(None) => return,
            Err(failure) => return later(failure),
        }
    }
}

/// Returns the removal after another one.
async fn next_removal(journal: &SharedJournal, after: Uuid) -> Result<Option<Uuid>, QueryFailure> {
    let sql = "SELECT id FROM removals WHERE id > $1 ORDER BY id LIMIT 1";
    let rows = journal.connections.reads().query(sql, &[&after]).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

/// Removes the rows of the log of a removal, in pieces.
async fn clear_log(journal: &SharedJournal, removal: Uuid) -> Result<(), QueryFailure> {
    let mut attempts = 1;
    loop {
        match clear_piece(journal, removal).await {
            Ok(true) => {}
            Err(failure) if failure.is_serialization() && attempts < ATTEMPTS_MAX => attempts += 1,
            result => return result.map(|_| ()),
        }
    }
}

/// Removes some rows of the log of a removal. Returns whether there is more to do. A removal that
/// another node works on is left to that node.
async fn clear_piece(journal: &SharedJournal, removal: Uuid) -> Result<bool, QueryFailure> {
    let piece = journal.connections.begin().await?;
    let lock = "SELECT log FROM removals WHERE id = $1 FOR UPDATE SKIP LOCKED";
    let rows = piece.query(lock, &[&removal]).await?;
    let Some(log) = rows.first().map(|row| row.get::<_, Uuid>(0)) else {
        piece.commit().await?;
        return Ok(false);
    };
    let has_more = clear_rows(&piece, log).await?;
    if !has_more {
        let done = "DELETE FROM removals WHERE id = $1";
        piece.query(done, &[&removal]).await?;
    }
    piece.commit().await?;
    Ok(has_more)
}

/// Removes some rows of a log that no thread uses. After the last, releases the logs that it shared.
/// Returns whether there may be more rows.
async fn clear_rows(piece: &Transaction<'_>, log: Uuid) -> Result<bool, QueryFailure> {
    let is_live = "SELECT 1 FROM threads WHERE log = $1 AND live";
    if !piece.query(is_live, &[&log]).await?.is_empty() {
        // A fork released it, and its own thread still exists.
        return Ok(false);
    }
    // Forks of a deleted thread share no more of it than those before them, so this only falls.
    let kept = "SELECT coalesce(max(upto), -1) FROM parts WHERE taken = $1";
    let rows = piece.query(kept, &[&log]).await?;
    let upto: i64 = rows.first().map_or(i64::MAX, |row| row.get(0));
    if clear_blobs(piece, log, upto).await? {
        return Ok(true);
    }
    for (table, number, upto) in [
        ("records", "seq", upto),
        ("marks", "seq", upto),
        ("texts", "seq", upto),
        ("bases", "at", upto),
        // They are never shared.
        ("deltas", "seq", -1),
    ] {
        let sql = format!(
            "DELETE FROM {table} WHERE log = $1 AND {number} IN (
                 SELECT {number} FROM {table} WHERE log = $1 AND {number} > $2
                 ORDER BY {number} DESC LIMIT $3)
             RETURNING 1"
        );
        let removed = piece.query(&sql, &[&log, &upto, &ROWS_MAX]).await?;
        if removed.len() as i64 >= ROWS_MAX {
            return Ok(true);
        }
    }
    if clear_blocks(piece, log, upto).await? {
        return Ok(true);
    }
    // Logs that it shared may be unused now, and are checked again.
    let release = "WITH freed AS (DELETE FROM parts WHERE log = $1 RETURNING taken)
                   INSERT INTO removals (id, log) SELECT it.id, it.log FROM unnest($2::uuid[],
                       $3::uuid[]) AS it(id, log) WHERE EXISTS (SELECT 1 FROM freed)";
    let shared = "SELECT DISTINCT taken FROM parts WHERE log = $1";
    let shared = piece.query(shared, &[&log]).await?;
    let shared: Vec<Uuid> = shared.iter().map(|row| row.get(0)).collect();
    let ids: Vec<Uuid> = shared.iter().map(|_| Uuid::now_v7()).collect();
    piece.query(release, &[&log, &ids, &shared]).await?;
    Ok(false)
}

/// Removes some blocks of text. Records up to a number leave their block and wait for the index again.
/// Returns whether there may be more. The index locks what it moves to a block, so nothing of it
/// appears after the texts were removed.
async fn clear_blocks(piece: &Transaction<'_>, log: Uuid, upto: i64) -> Result<bool, QueryFailure> {
    let sql = "WITH gone AS (
                   DELETE FROM text_blocks WHERE log = $1 AND upto IN (
                       SELECT upto FROM text_blocks WHERE log = $1 AND upto > $2
                       ORDER BY upto DESC LIMIT $3)
                   RETURNING seqs, texts),
               shared AS (
                   INSERT INTO texts (log, seq, text)
                   SELECT $1, it.seq, it.text FROM gone, unnest(seqs, texts) AS it(seq, text)
                   WHERE it.seq <= $2)
               SELECT 1 FROM gone";
    let removed = piece.query(sql, &[&log, &upto, &BLOCKS_MAX]).await?;
    Ok(removed.len() as i64 >= BLOCKS_MAX)
}

/// Removes some uses of blobs after a number, and the blobs without any use. Returns whether there
/// may be more.
async fn clear_blobs(piece: &Transaction<'_>, log: Uuid, upto: i64) -> Result<bool, QueryFailure> {
    let uses = "DELETE FROM blob_uses WHERE log = $1 AND seq IN (
                    SELECT seq FROM blob_uses WHERE log = $1 AND seq > $2
                    ORDER BY seq DESC LIMIT $3)
                RETURNING family, hash";
    let rows = piece.query(uses, &[&log, &upto, &ROWS_MAX]).await?;
    let families: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    let hashes: Vec<&[u8]> = rows.iter().map(|row| row.get(1)).collect();
    piece.query(DELETE_UNUSED, &[&families, &hashes]).await?;
    Ok(rows.len() as i64 >= ROWS_MAX)
}

/// Deletes blobs that no record names, and none is about to name.
const DELETE_UNUSED: &str = "
    DELETE FROM blobs USING unnest($1::uuid[], $2::bytea[]) AS it(family, hash)
    WHERE blobs.family = it.family AND blobs.hash = it.hash AND blobs.waiting = 0
        AND NOT EXISTS (SELECT 1 FROM blob_uses
            WHERE blob_uses.family = it.family AND blob_uses.hash = it.hash)";

/// Removes some blobs that no record has named for an hour.
async fn expire_blobs(journal: &SharedJournal) -> Result<(), QueryFailure> {
    let old = "SELECT family, hash FROM blobs
               WHERE waiting > 0 AND put_at < now() - interval '1 hour' LIMIT 100";
    let rows = journal.connections.reads().query(old, &[]).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let families: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    let hashes: Vec<&[u8]> = rows.iter().map(|row| row.get(1)).collect();
    let expired = journal.connections.begin().await?;
    let waive =
        "UPDATE blobs SET waiting = 0 FROM unnest($1::uuid[], $2::bytea[]) AS it(family, hash)
                 WHERE blobs.family = it.family AND blobs.hash = it.hash
                     AND put_at < now() - interval '1 hour'";
    expired.query(waive, &[&families, &hashes]).await?;
    expired.query(DELETE_UNUSED, &[&families, &hashes]).await?;
    expired.commit().await
}
