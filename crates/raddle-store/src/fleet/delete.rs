//! Deletes threads. The id is free at once; rows are removed after that, in pieces. An interrupted
//! removal is resumed by the next deletion of any node.
//!
//! Rows that forks share stay: they are removed with the last thread that uses them.

use raddle_core::ports::AppendError;
use raddle_core::{Event, Seq, ThreadId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::SharedJournal;
use super::error::{self, QueryFailure};
use super::event_row;
use super::segments::OF_T;
use super::thread_state::{as_i64, seq};
use crate::records::is_deletion;

/// Maximum number of records that one statement removes.
const ROWS_MAX: i64 = 2000;

/// Maximum number of logs that one deletion clears: its own, those whose last fork it was, and those
/// that another deletion left.
const LOGS_MAX: usize = 64;

/// Deletes a thread, if it exists.
pub(super) async fn delete(journal: &SharedJournal, thread: ThreadId) -> Result<(), AppendError> {
    remove(journal, thread, None).await
}

/// Deletes a thread if its newest record has a number and marks the deletion.
pub(super) async fn forget(
    journal: &SharedJournal,
    thread: ThreadId,
    head: Seq,
) -> Result<(), AppendError> {
    let deleted = find_deleted(journal, thread, head).await;
    match deleted.map_err(error::repeatable)? {
        Some(log) => remove(journal, thread, Some((head, log))).await,
        None => Ok(()),
    }
}

/// Removes the row of a thread, with one exact state if it is named.
async fn remove(
    journal: &SharedJournal,
    thread: ThreadId,
    only: Option<(Seq, Uuid)>,
) -> Result<(), AppendError> {
    let (head, log) = only.map_or((None, None), |(head, log)| (Some(as_i64(head)), Some(log)));
    // A fork locks the row of the thread that it shares, so either it is first, and its parts are
    // visible to the removal of the rows, or it finds no thread.
    let sql = "WITH gone AS (
                   DELETE FROM threads WHERE id = $1 AND live
                       AND ($2::bigint IS NULL OR (head = $2 AND log = $3::uuid))
                   RETURNING log),
               unlisted AS (DELETE FROM summaries USING gone WHERE id = $1)
               INSERT INTO removals (id, log) SELECT $4::uuid, log FROM gone";
    let connection = journal.connections.events(thread);
    let removal = Uuid::now_v7();
    let removed = connection
        .query(sql, &[thread.as_uuid(), &head, &log, &removal])
        .await;
    removed.map_err(error::append)?;
    journal.threads.remove(thread);
    journal.node_log.forget(thread);
    // The thread is gone. What follows frees space, and the next deletion resumes it.
    if let Err(failure) = clear(journal).await {
        tracing::warn!(?failure, "rows of deleted threads are removed later");
    }
    Ok(())
}

/// Returns the log of a thread whose newest record has a number and marks its deletion.
async fn find_deleted(
    journal: &SharedJournal,
    thread: ThreadId,
    head: Seq,
) -> Result<Option<Uuid>, QueryFailure> {
    let sql = format!(
        "WITH t AS (SELECT log FROM threads WHERE id = $1 AND live AND head = $2 AND tail = $2),
         segment AS ({OF_T})
         SELECT t.log, it.seq, it.form, it.body FROM t, segment JOIN LATERAL (
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
            Some(Some(true)) => return Ok(Some(row.get(0))),
            Some(Some(false)) | None => return Ok(None),
        }
    }
    Ok(None)
}

/// Removes the rows of logs that are no longer needed, oldest first.
async fn clear(journal: &SharedJournal) -> Result<(), QueryFailure> {
    expire_blobs(journal).await?;
    clear_node_logs(journal).await?;
    for _ in 0..LOGS_MAX {
        let sql = "SELECT id, log FROM removals ORDER BY id LIMIT 1";
        let rows = journal.connections.reads().query(sql, &[]).await?;
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let (removal, log): (Uuid, Uuid) = (row.get(0), row.get(1));
        clear_log(journal, log).await?;
        let done = journal.connections.begin().await?;
        done.query("DELETE FROM removals WHERE id = $1", &[&removal])
            .await?;
        done.commit().await?;
    }
    Ok(())
}

/// Removes the rows of a log that no thread uses, and releases the logs that it shared.
async fn clear_log(journal: &SharedJournal, log: Uuid) -> Result<(), QueryFailure> {
    let is_live = "SELECT 1 FROM threads WHERE log = $1 AND live";
    if !journal
        .connections
        .reads()
        .query(is_live, &[&log])
        .await?
        .is_empty()
    {
        // A fork released it, and its own thread still exists.
        return Ok(());
    }
    // Forks of a deleted thread share no more of it than those before them, so this only falls.
    let kept = "SELECT coalesce(max(upto), -1) FROM parts WHERE taken = $1";
    let rows = journal.connections.reads().query(kept, &[&log]).await?;
    let upto: i64 = rows.first().map_or(i64::MAX, |row| row.get(0));
    clear_blobs(journal, log, upto).await?;
    while clear_records(journal, log, upto).await? {}
    let rest = journal.connections.begin().await?;
    for (table, number) in [("marks", "seq"), ("texts", "seq"), ("bases", "at")] {
        let sql = format!("DELETE FROM {table} WHERE log = $1 AND {number} > $2");
        rest.query(&sql, &[&log, &upto]).await?;
    }
    rest.query("DELETE FROM deltas WHERE log = $1", &[&log])
        .await?;
    // Logs that it shared may be unused now, and are checked again.
    let release = "WITH freed AS (DELETE FROM parts WHERE log = $1 RETURNING taken)
                   INSERT INTO removals (id, log) SELECT it.id, it.log FROM unnest($2::uuid[],
                       $3::uuid[]) AS it(id, log) WHERE EXISTS (SELECT 1 FROM freed)";
    let shared = rest
        .query("SELECT DISTINCT taken FROM parts WHERE log = $1", &[&log])
        .await?;
    let shared: Vec<Uuid> = shared.iter().map(|row| row.get(0)).collect();
    let ids: Vec<Uuid> = shared.iter().map(|_| Uuid::now_v7()).collect();
    rest.query(release, &[&log, &ids, &shared]).await?;
    rest.commit().await
}

/// Removes some events after a number, the last first. Returns whether there may be more.
async fn clear_records(
    journal: &SharedJournal,
    log: Uuid,
    upto: i64,
) -> Result<bool, QueryFailure> {
    let sql = "DELETE FROM records WHERE log = $1 AND seq IN (
                   SELECT seq FROM records WHERE log = $1 AND seq > $2
                   ORDER BY seq DESC LIMIT $3)
               RETURNING seq";
    let piece = journal.connections.begin().await?;
    let removed = piece.query(sql, &[&log, &upto, &ROWS_MAX]).await?;
    piece.commit().await?;
    Ok(removed.len() as i64 == ROWS_MAX)
}

/// Removes the uses of blobs after a number, and the blobs without any use.
async fn clear_blobs(journal: &SharedJournal, log: Uuid, upto: i64) -> Result<(), QueryFailure> {
    let freed = journal.connections.begin().await?;
    let uses = "DELETE FROM blob_uses WHERE log = $1 AND seq > $2 RETURNING family, hash";
    let rows = freed.query(uses, &[&log, &upto]).await?;
    let families: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    let hashes: Vec<&[u8]> = rows.iter().map(|row| row.get(1)).collect();
    let unused = "DELETE FROM blobs USING unnest($1::uuid[], $2::bytea[]) AS it(family, hash)
                  WHERE blobs.family = it.family AND blobs.hash = it.hash AND blobs.waiting = 0
                      AND NOT EXISTS (SELECT 1 FROM blob_uses
                          WHERE blob_uses.family = it.family AND blob_uses.hash = it.hash)";
    freed.query(unused, &[&families, &hashes]).await?;
    freed.commit().await
}

/// Removes sealed node logs in which no thread has deltas. A node that still writes to one is refused,
/// as by a sealed one.
async fn clear_node_logs(journal: &SharedJournal) -> Result<(), QueryFailure> {
    let unused = "SELECT id FROM node_logs WHERE sealed
                      AND NOT EXISTS (SELECT 1 FROM threads WHERE writer = node_logs.id)
                  LIMIT 10";
    let rows = journal.connections.reads().query(unused, &[]).await?;
    for row in &rows {
        let log: Uuid = row.get(0);
        let removal = journal.connections.begin().await?;
        for sql in [
            "DELETE FROM node_batches WHERE node_log = $1",
            "DELETE FROM node_logs WHERE id = $1",
        ] {
            removal.query(sql, &[&log]).await?;
        }
        removal.commit().await?;
    }
    Ok(())
}

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
    let unused = "DELETE FROM blobs USING unnest($1::uuid[], $2::bytea[]) AS it(family, hash)
                  WHERE blobs.family = it.family AND blobs.hash = it.hash AND blobs.waiting = 0
                      AND NOT EXISTS (SELECT 1 FROM blob_uses
                          WHERE blob_uses.family = it.family AND blob_uses.hash = it.hash)";
    expired.query(unused, &[&families, &hashes]).await?;
    expired.commit().await
}
