//! The task that sends batches, one after another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::batch::{BatchRows, DeltaBatch};
use super::{CounterCheck, GatherOutcome, LogState, NodeLog, TRIM_BATCHES};
use crate::fleet::SharedJournal;
use crate::fleet::error::QueryFailure;

/// Minimum time between the beginnings of two batches.
const INTERVAL_MIN: Duration = Duration::from_millis(5);

/// Time after an attempt without a known outcome until the next.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Time for which stored batches are kept to be sent again: a lease of nine seconds, and ten more.
const KEEP: Duration = Duration::from_secs(20);

/// Maximum size of the batches that are kept.
const KEEP_BYTES_MAX: usize = 32 << 20;

/// Number of batches that are deleted again when the database lost some: those of a second.
const REPEATED: i64 = 200;

/// Sends batches until the task is aborted.
pub(in crate::fleet) async fn send_batches(journal: Arc<SharedJournal>) {
    let mut sender = BatchSender::new(journal);
    let mut began: Option<Instant> = None;
    loop {
        sender.log().work.notified().await;
        // A notification may be of work that is done already.
        while sender.log().has_work() {
            if let Some(began) = began {
                tokio::time::sleep_until(began + INTERVAL_MIN).await;
            }
            began = Some(Instant::now());
            sender.send().await;
        }
    }
}

impl NodeLog {
    fn has_work(&self) -> bool {
        let state = self.state();
        !state.queue.is_empty() || !state.checks.is_empty()
    }
}

/// Outcome of a batch, or of a comparison of the counter.
#[derive(Debug)]
enum SendOutcome {
    Stored,
    Sealed,
    Failed(QueryFailure),
}

/// State of the log's row.
enum LogRow {
    /// The newest batch of a log that is not sealed.
    Open(i64),
    /// The newest batch of a sealed log.
    Sealed(i64),
    /// The log was sealed, and is removed.
    Removed,
}

/// Sender of the batches of one log at a time.
struct BatchSender {
    journal: Arc<SharedJournal>,
    id: Uuid,
    /// Counter in the log's row, as far as it is known.
    counter: i64,
    /// Stored batches that may have to be sent again, ascending, and the one that is being sent.
    sent: VecDeque<(Arc<BatchRows>, Instant)>,
    sent_bytes: usize,
    /// Newest batch that is not kept any more.
    dropped: i64,
}

impl BatchSender {
    fn new(journal: Arc<SharedJournal>) -> Self {
        let id = journal.node_log.position().log;
        Self {
            journal,
            id,
            counter: 0,
            sent: VecDeque::new(),
            sent_bytes: 0,
            dropped: 0,
        }
    }

    fn log(&self) -> &NodeLog {
        &self.journal.node_log
    }

    /// Sends what the queue has, and tells the callers.
    async fn send(&mut self) {
        let (id, batch, checks) = {
            let mut state = self.log().state();
            let checks = std::mem::take(&mut state.checks);
            (state.id, state.next_batch(), checks)
        };
        // The log has begun since. No batch of another one was sent.
        self.id = id;
        if !checks.is_empty() {
            self.check(checks).await;
        }
        let Some(DeltaBatch { rows, callers }) = batch else {
            return;
        };
        let outcome = if self.id == id {
            self.store(&rows).await
        } else {
            GatherOutcome::Sealed
        };
        if !matches!(outcome, GatherOutcome::Stored) {
            // The deltas are not stored, so no flush may copy them from the cached state.
            for (thread, _) in &callers {
                self.journal.threads.remove(*thread);
            }
        }
        let is_trim_due = {
            let mut state = self.log().state();
            if state.id == id {
                state.stored = self.counter;
                for (thread, _) in &callers {
                    state.unresolved.remove(thread);
                }
            }
            rows.n % TRIM_BATCHES == 0
        };
        for (_, done) in callers {
            // The caller may wait no longer.
            let _ = done.send(outcome.clone());
        }
        self.log().resolved.notify_waiters();
        if is_trim_due {
            self.log().trim.notify_one();
        }
    }

    /// Sends a batch, and the lost ones before it.
    async fn store(&mut self, rows: &Arc<BatchRows>) -> GatherOutcome {
        self.sent_bytes += rows.bytes;
        self.sent.push_back((Arc::clone(rows), Instant::now()));
        let outcome = match self.send_all().await {
            SendOutcome::Stored => GatherOutcome::Stored,
            SendOutcome::Sealed => {
                self.begin_anew();
                GatherOutcome::Sealed
            }
            SendOutcome::Failed(failure) => {
                // Its number is not used again.
                if let Some((rows, _)) = self.sent.pop_back() {
                    self.sent_bytes -= rows.bytes;
                }
                GatherOutcome::Failed(failure)
            }
        };
        self.drop_old();
        outcome
    }

    /// Compares the counter, and sends the batches again that the database lost.
    async fn check(&mut self, checks: Vec<CounterCheck>) {
        let outcome = match self.look().await {
            Ok(LogRow::Open(stored)) => {
                self.set_counter(stored);
                match self.send_all().await {
                    SendOutcome::Failed(failure) => Err(failure),
                    SendOutcome::Stored => Ok(()),
                    SendOutcome::Sealed => {
                        self.begin_anew();
                        Ok(())
                    }
                }
            }
            // The next batch is refused. Until then nothing is known to be lost.
            Ok(LogRow::Sealed(_) | LogRow::Removed) => Ok(()),
            Err(failure) => Err(failure),
        };
        {
            let mut state = self.log().state();
            if state.id == self.id {
                state.stored = self.counter;
            }
        }
        for check in checks {
            let _ = check.send(outcome.clone());
        }
    }

    /// Sends all batches after the counter, until it is known what became of each.
    async fn send_all(&mut self) -> SendOutcome {
        let mut may_have_happened = false;
        let mut is_retry = false;
        loop {
            let newest = self.sent.back().map_or(0, |(rows, _)| rows.n);
            let next = self.sent.iter().find(|(rows, _)| rows.n > self.counter);
            let Some((rows, _)) = next else {
                return SendOutcome::Stored;
            };
            let rows = Arc::clone(rows);
            if is_retry {
                tokio::time::sleep(RETRY_AFTER).await;
            }
            let connection = self.journal.connections.batches();
            match rows.insert(connection, self.id, self.counter).await {
                Ok(true) => {
                    self.counter = rows.n;
                    is_retry = false;
                    continue;
                }
                Ok(false) => {}
                Err(QueryFailure::Lost(what)) => {
                    tracing::debug!(what, n = rows.n, "the outcome of a batch is unknown");
                    may_have_happened |= rows.n == newest;
                    is_retry = true;
                    continue;
                }
                Err(failure) if !may_have_happened => return SendOutcome::Failed(failure),
                Err(failure) => {
                    tracing::debug!(?failure, n = rows.n, "a batch is sent again");
                    is_retry = true;
                    continue;
                }
            }
            match self.look().await {
                Ok(LogRow::Open(stored)) => {
                    // Unless something changed, the next attempt is the same.
                    is_retry = stored == self.counter;
                    self.set_counter(stored);
                }
                Ok(LogRow::Sealed(stored)) if stored >= newest => {
                    self.counter = stored;
                }
                Ok(LogRow::Sealed(_) | LogRow::Removed) => return SendOutcome::Sealed,
                Err(failure) if !may_have_happened => return SendOutcome::Failed(failure),
                Err(_) => is_retry = true,
            }
        }
    }

    /// Reads the log's row.
    async fn look(&self) -> Result<LogRow, QueryFailure> {
        let sql = "SELECT n, sealed FROM node_logs WHERE id = $1";
        let connection = self.journal.connections.batches();
        let rows = connection.query(sql, &[&self.id]).await;
        let rows = rows.map_err(|failure| match failure {
            QueryFailure::Lost(what) => QueryFailure::NotSent(what),
            other => other,
        })?;
        Ok(rows.first().map_or(LogRow::Removed, |row| {
            let stored = row.get(0);
            match row.get(1) {
                true => LogRow::Sealed(stored),
                false => LogRow::Open(stored),
            }
        }))
    }

    /// Follows the counter in the row. It is lower than expected if the database lost batches.
    fn set_counter(&mut self, stored: i64) {
        if stored < self.counter {
            let lost = self.counter - stored;
            tracing::warn!(
                lost,
                "the database lost batches of deltas; they are sent again"
            );
            if stored < self.dropped {
                let lost = self.dropped - stored;
                tracing::warn!(
                    lost,
                    "batches of deltas are lost: they are too old to be sent again"
                );
            }
            self.log().state().reinstate(stored);
        }
        self.counter = stored;
    }

    /// Forgets batches that cannot have been lost any more.
    fn drop_old(&mut self) {
        while let Some((rows, at)) = self.sent.front()
            && (at.elapsed() > KEEP || self.sent_bytes > KEEP_BYTES_MAX)
            && rows.n <= self.counter
        {
            self.dropped = rows.n;
            self.sent_bytes -= rows.bytes;
            self.sent.pop_front();
        }
    }

    /// Leaves the sealed log with all its threads, and begins another.
    fn begin_anew(&mut self) {
        tracing::warn!(
            log = %self.id,
            "another node sealed the node log; this node leaves all its threads"
        );
        let former = std::mem::take(&mut *self.log().state());
        // Appends that rely on the former log must look at their rows again.
        self.journal.threads.clear();
        for append in former.queue {
            let _: Result<(), GatherOutcome> = append.done.send(GatherOutcome::Sealed);
        }
        for check in former.checks {
            let _ = check.send(Ok(()));
        }
        self.log().resolved.notify_waiters();
        *self = Self::new(Arc::clone(&self.journal));
    }
}

impl LogState {
    /// Follows a counter that fell: the batches after it are inserted again, and must be trimmed again.
    fn reinstate(&mut self, stored: i64) {
        self.stored = self.stored.min(stored);
        for lane in &mut self.lanes {
            // The deletion of some batches before it may be lost, too.
            lane.trimmed = lane.trimmed.min(stored.saturating_sub(REPEATED)).max(0);
        }
    }
}
