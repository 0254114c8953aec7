//! A batch: deltas of several threads, as one statement.

use std::sync::Arc;

use raddle_core::ThreadId;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::GatherOutcome;
use crate::fleet::connections::SharedConnection;
use crate::fleet::delta_row::{DeltaColumns, DeltaRow};
use crate::fleet::error::QueryFailure;

/// Deltas of one append that wait for a batch.
#[derive(Debug)]
pub(in crate::fleet) struct QueuedAppend {
    pub(super) thread: ThreadId,
    pub(super) lane: i16,
    /// Key of the thread's rows.
    pub(super) log: Uuid,
    pub(super) rows: Vec<Arc<DeltaRow>>,
    pub(super) bytes: usize,
    pub(super) done: oneshot::Sender<GatherOutcome>,
}

/// Appends that are sent together, and the caller of each.
#[derive(Debug)]
pub(super) struct DeltaBatch {
    pub(super) rows: Arc<BatchRows>,
    pub(super) callers: Vec<(ThreadId, oneshot::Sender<GatherOutcome>)>,
}

/// Rows of a batch, which can be sent again.
#[derive(Debug)]
pub(super) struct BatchRows {
    pub(super) n: i64,
    pub(super) bytes: usize,
    /// Lane and log of each row.
    rows: Vec<(i16, Uuid, Arc<DeltaRow>)>,
}

impl DeltaBatch {
    pub(super) fn new(n: i64, appends: Vec<QueuedAppend>, bytes: usize) -> Self {
        let mut rows = Vec::new();
        let mut callers = Vec::with_capacity(appends.len());
        for append in appends {
            let (lane, log) = (append.lane, append.log);
            rows.extend(append.rows.into_iter().map(|row| (lane, log, row)));
            callers.push((append.thread, append.done));
        }
        let rows = Arc::new(BatchRows { n, bytes, rows });
        Self { rows, callers }
    }
}

impl BatchRows {
    /// Sends the batch as the next one after another. Returns whether it had an effect.
    pub(super) async fn insert(
        &self,
        connection: &SharedConnection,
        log: Uuid,
        after: i64,
    ) -> Result<bool, QueryFailure> {
        let lanes: Vec<i16> = self.rows.iter().map(|(lane, ..)| *lane).collect();
        let logs: Vec<Uuid> = self.rows.iter().map(|(_, log, _)| *log).collect();
        let columns: DeltaColumns<'_> = self.rows.iter().map(|(.., row)| &**row).collect();
        let sql = "WITH moved AS (
                       UPDATE node_logs SET n = $2 WHERE id = $1 AND n = $3 AND NOT sealed
                       RETURNING id)
                   INSERT INTO node_batches
                       (node_log, lane, n, logs, seqs, ats, items, sizes, bodies)
                   SELECT moved.id, it.lane, $2, array_agg(it.log), array_agg(it.seq),
                       array_agg(it.at), array_agg(it.item), array_agg(it.bytes),
                       array_agg(it.body)
                   FROM moved, unnest($4::smallint[], $5::uuid[], $6::bigint[], $7::bigint[],
                       $8::text[], $9::integer[], $10::bytea[])
                       AS it(lane, log, seq, at, item, bytes, body)
                   GROUP BY moved.id, it.lane
                   RETURNING 1";
        let inserted = connection
            .query(
                sql,
                &[
                    &log,
                    &self.n,
                    &after,
                    &lanes,
                    &logs,
                    &columns.seq,
                    &columns.at,
                    &columns.item,
                    &columns.bytes,
                    &columns.body,
                ],
            )
            .await?;
        Ok(!inserted.is_empty())
    }
}
