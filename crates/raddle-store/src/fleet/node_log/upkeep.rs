//! The task that keeps the log short: it deletes batches that no thread needs, and copies deltas that
//! hold batches for too long to the rows of their threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::ThreadId;
use raddle_core::ports::AppendError;

use super::{LogState, NodeLog};
use crate::fleet::SharedJournal;
use crate::fleet::append;
use crate::fleet::delta_row::LANES;
use crate::fleet::error::QueryFailure;

/// Maximum number of threads whose deltas are copied in one round.
const FLUSHES_MAX: usize = 64;

/// Maximum number of batches that one statement deletes.
const BATCHES_MAX: i64 = 256;

/// Keeps the log short until the task is aborted. A thread may hold batches for a time.
pub(in crate::fleet) async fn keep_short(
    journal: Arc<SharedJournal>,
    hold_max: Duration,
    interval: Duration,
) {
    loop {
        if !journal.node_log.state().has_upkeep() {
            journal.node_log.upkeep.notified().await;
            continue;
        }
        // Whichever comes first.
        let many = journal.node_log.trim.notified();
        let _ = tokio::time::timeout(interval, many).await;
        flush_old(&journal, hold_max).await;
        if let Err(failure) = shorten(&journal).await {
            tracing::debug!(?failure, "batches of deltas are deleted later");
        }
    }
}

/// Deletes the batches that no thread needs.
async fn shorten(journal: &SharedJournal) -> Result<(), QueryFailure> {
    // A thread that is silent would not notice that the database lost its newest batches.
    let limit = journal.connections.statement_max();
    journal.node_log.compare(limit).await?;
    trim(journal).await
}

/// Copies deltas to the rows of threads that have held batches for a time.
async fn flush_old(journal: &SharedJournal, age: Duration) {
    for thread in journal.node_log.old_holds(age) {
        if let Err(error) = append::flush(journal, thread).await {
            tracing::debug!(%thread, %error, "deltas of a thread are copied later");
            // One thread that cannot be read does not keep the others.
            if matches!(error, AppendError::Unavailable(_) | AppendError::Unknown(_)) {
                return;
            }
        }
    }
}

async fn trim(journal: &SharedJournal) -> Result<(), QueryFailure> {
    let sql = "DELETE FROM node_batches AS b
               USING unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS it(lane, after, upto)
               WHERE b.node_log = $1 AND b.lane = it.lane AND b.n > it.after AND b.n <= it.upto";
    loop {
        let (log, ranges) = {
            let state = journal.node_log.state();
            (state.id, state.unneeded())
        };
        if ranges.is_empty() {
            return Ok(());
        }
        let lanes: Vec<i16> = ranges.iter().map(|it| it.lane).collect();
        let after: Vec<i64> = ranges.iter().map(|it| it.after).collect();
        let upto: Vec<i64> = ranges.iter().map(|it| it.upto).collect();
        let connection = journal.connections.deltas();
        connection
            .query(sql, &[&log, &lanes, &after, &upto])
            .await?;
        let mut state = journal.node_log.state();
        if state.id != log {
            return Ok(());
        }
        for range in ranges {
            let lane = &mut state.lanes[range.lane as usize];
            // The database may have lost batches meanwhile, which are inserted again.
            if lane.trimmed == range.after {
                lane.trimmed = range.upto;
            }
        }
    }
}

/// Batches of a lane that no thread needs.
struct LaneRange {
    lane: i16,
    after: i64,
    upto: i64,
}

impl NodeLog {
    fn old_holds(&self, age: Duration) -> Vec<ThreadId> {
        let now = Instant::now();
        let state = self.state();
        let mut old: Vec<_> = state
            .holds
            .iter()
            .filter(|(_, hold)| now.duration_since(hold.at) >= age)
            .map(|(thread, hold)| (hold.first, *thread))
            .collect();
        old.sort_unstable();
        old.truncate(FLUSHES_MAX);
        old.into_iter().map(|(_, thread)| thread).collect()
    }
}

impl LogState {
    /// Whether the log has batches, or may have.
    pub(super) fn has_upkeep(&self) -> bool {
        !self.holds.is_empty() || self.lanes.iter().any(|it| it.newest > it.trimmed)
    }

    fn unneeded(&self) -> Vec<LaneRange> {
        let mut upto = [self.stored; LANES];
        for (thread, hold) in &self.holds {
            let upto = &mut upto[super::lane(*thread) as usize];
            *upto = hold.first.saturating_sub(1).min(*upto);
        }
        let lanes = (0_i16..).zip(self.lanes).zip(upto);
        let ranges = lanes.map(|((lane, extent), upto)| LaneRange {
            lane,
            after: extent.trimmed,
            upto: upto.min(extent.newest).min(extent.trimmed + BATCHES_MAX),
        });
        ranges.filter(|it| it.after < it.upto).collect()
    }
}
