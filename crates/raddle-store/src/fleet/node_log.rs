//! Node log: deltas of all threads of a node, gathered in batches.
//!
//! An append of deltas waits in a queue. One task sends what the queue has as one statement, at once
//! if nothing is on its way, and not more often than every five milliseconds. The statement raises the
//! counter `n` in the log's row on the condition that the log is not sealed. A seal changes the same
//! row, so one of the two waits for the other.
//!
//! Batches commit without waiting for the disk, so a change of the primary can lose acknowledged ones.
//! The next batch then finds a lower counter than it expects, and the task sends the lost batches
//! again from memory.
//!
//! Deltas in the log count only after the head in the thread's row. The next append of an event moves
//! that head; the deltas that it does not settle are copied to the table `deltas` by the same
//! statement. So a batch is not needed any more once all its threads had such an append.

mod batch;
mod ended;
mod release;
mod sender;
mod upkeep;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use raddle_core::ThreadId;
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use super::SharedJournal;
use super::delta_row::{DeltaRow, LANES, lane};
use super::error::QueryFailure;
use batch::DeltaBatch;

pub(super) use batch::QueuedAppend;
pub(super) use ended::{close, remove_ended};
pub(super) use sender::send_batches;
pub(super) use upkeep::keep_short;

/// Maximum size of the appends that wait to be sent.
const QUEUE_BYTES_MAX: usize = 16 << 20;

/// Maximum size of a batch, unless a single append is longer.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Number of batches after which those that are not needed any more are deleted.
const TRIM_BATCHES: i64 = 64;

/// Outcome of an append to the node log.
#[derive(Clone, Debug)]
pub(super) enum GatherOutcome {
    /// It is in the log.
    Stored,
    /// The log was sealed before: it is not stored, and another node may have the thread.
    Sealed,
    /// It is not stored.
    Failed(QueryFailure),
}

/// Reason why an append was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnqueueError {
    /// The node has another log now.
    OtherLog,
    /// Another append of the thread is on its way.
    Busy,
    /// The queue is full.
    Full,
}

/// The node's own log.
#[derive(Debug, Default)]
pub(super) struct NodeLog {
    state: Mutex<LogState>,
    /// Held while the row of the log is inserted.
    beginning: tokio::sync::Mutex<()>,
    /// Tells the sender that there is work.
    work: Notify,
    /// Tells appends and reads that outcomes are known.
    resolved: Notify,
    /// Tells the upkeep that there may be work, as it waits for any.
    upkeep: Notify,
    /// Tells the upkeep that there are many batches.
    trim: Notify,
}

/// A request for the sender to compare the counter and to send lost batches again.
type CounterCheck = oneshot::Sender<Result<(), QueryFailure>>;

#[derive(Debug)]
struct LogState {
    /// Id of the log; of none as long as it has no row.
    id: Uuid,
    /// Whether the log's row exists.
    has_row: bool,
    /// Number of the newest batch, which may not be sent yet.
    newest: i64,
    /// Number of the newest stored batch.
    stored: i64,
    queue: VecDeque<QueuedAppend>,
    queue_bytes: usize,
    checks: Vec<CounterCheck>,
    /// Threads with an append that is queued or on its way: at most one of each.
    unresolved: HashSet<ThreadId>,
    /// Batches that are needed until an append moves the thread's head.
    holds: HashMap<ThreadId, Hold>,
    lanes: [LaneExtent; LANES],
}

/// Batches that a thread needs.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// The first of them.
    first: i64,
    /// The last of them; `None` while deltas of the thread wait for their batch.
    last: Option<i64>,
    at: Instant,
}

/// Batches of a lane.
#[derive(Clone, Copy, Debug, Default)]
struct LaneExtent {
    /// Newest batch with deltas in this lane.
    newest: i64,
    /// Batches up to this one are deleted.
    trimmed: i64,
}

impl Default for LogState {
    fn default() -> Self {
        Self {
            id: Uuid::now_v7(),
            has_row: false,
            newest: 0,
            stored: 0,
            queue: VecDeque::new(),
            queue_bytes: 0,
            checks: Vec::new(),
            unresolved: HashSet::new(),
            holds: HashMap::new(),
            lanes: [LaneExtent::default(); LANES],
        }
    }
}

/// Newest batch of the node's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogPosition {
    pub(super) log: Uuid,
    pub(super) newest: i64,
}

impl NodeLog {
    /// Returns the newest batch.
    pub(super) fn position(&self) -> LogPosition {
        self.state().position()
    }

    /// Returns the newest batch, unless deltas of a thread are on their way. An append may say in the
    /// thread's row that this batch and those before it have no deltas after its head.
    pub(super) fn position_of(&self, thread: ThreadId) -> Option<LogPosition> {
        let state = self.state();
        (!state.unresolved.contains(&thread)).then(|| state.position())
    }

    /// Returns the newest stored batch.
    pub(super) fn stored(&self) -> LogPosition {
        let state = self.state();
        LogPosition {
            log: state.id,
            newest: state.stored,
        }
    }

    /// Queues deltas of a thread. The receiver gets the outcome. `log` is the log that the thread's
    /// row names.
    pub(super) fn enqueue(&self, log: Uuid, append: QueuedAppend) -> Result<(), EnqueueError> {
        let mut state = self.state();
        if state.id != log {
            return Err(EnqueueError::OtherLog);
        }
        if state.unresolved.contains(&append.thread) {
            return Err(EnqueueError::Busy);
        }
        // An empty queue takes an append of any size.
        if state.queue_bytes > 0 && state.queue_bytes + append.bytes > QUEUE_BYTES_MAX {
            return Err(EnqueueError::Full);
        }
        state.unresolved.insert(append.thread);
        let has_upkeep = state.has_upkeep();
        let hold = Hold {
            first: state.newest + 1,
            last: None,
            at: Instant::now(),
        };
        state.holds.entry(append.thread).or_insert(hold).last = None;
        state.queue_bytes += append.bytes;
        state.queue.push_back(append);
        drop(state);
        self.work.notify_one();
        if !has_upkeep {
            self.upkeep.notify_one();
        }
        Ok(())
    }

    /// Waits until no deltas of a thread are on their way.
    pub(super) async fn resolve(
        &self,
        thread: ThreadId,
        limit: Duration,
    ) -> Result<(), QueryFailure> {
        let resolved = async {
            loop {
                let outcome = self.resolved.notified();
                if !self.state().unresolved.contains(&thread) {
                    return;
                }
                outcome.await;
            }
        };
        tokio::time::timeout(limit, resolved).await.map_err(|_| {
            let what = "deltas of the thread are still on their way to the database";
            QueryFailure::NotSent(what.to_owned())
        })
    }

    /// Sends the batches again that the database lost, if the thread has deltas in them.
    pub(super) async fn confirm(
        &self,
        thread: ThreadId,
        limit: Duration,
    ) -> Result<(), QueryFailure> {
        if !self.state().holds.contains_key(&thread) {
            return Ok(());
        }
        self.compare(limit).await
    }

    /// Sends the batches again that the database lost.
    pub(super) async fn compare(&self, limit: Duration) -> Result<(), QueryFailure> {
        let (check, outcome) = oneshot::channel();
        {
            let mut state = self.state();
            if !state.has_row {
                return Ok(());
            }
            state.checks.push(check);
        }
        self.work.notify_one();
        let late = || QueryFailure::NotSent("the database did not answer in time".to_owned());
        match tokio::time::timeout(limit, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(late()),
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins the node's log, unless it has begun. Its row is durable before a thread names it.
///
/// Each attempt inserts another row: one that is late must not bring back a log that was sealed, and
/// removed since.
pub(super) async fn begin(journal: &SharedJournal, thread: ThreadId) -> Result<(), QueryFailure> {
    let _alone = journal.node_log.beginning.lock().await;
    if journal.node_log.state().has_row {
        return Ok(());
    }
    let id = Uuid::now_v7();
    let sql = "INSERT INTO node_logs (id, n, beats, sealed) VALUES ($1, 0, 0, false)";
    let connection = journal.connections.events(thread);
    connection.query(sql, &[&id]).await?;
    let mut state = journal.node_log.state();
    state.id = id;
    state.has_row = true;
    Ok(())
}

/// Seals the log of another node. Waits for a batch that is on its way, and the next one has no
/// effect.
pub(super) async fn seal(
    journal: &SharedJournal,
    thread: ThreadId,
    log: Uuid,
) -> Result<(), QueryFailure> {
    let sql = "UPDATE node_logs SET sealed = true WHERE id = $1 AND NOT sealed";
    let connection = journal.connections.events(thread);
    connection.query(sql, &[&log]).await.map(|_| ())
}

/// Whether a log accepts no batches.
pub(super) async fn is_sealed(journal: &SharedJournal, log: Uuid) -> Result<bool, QueryFailure> {
    let sql = "SELECT 1 FROM node_logs WHERE id = $1 AND NOT sealed";
    let rows = journal.connections.reads().query(sql, &[&log]).await?;
    Ok(rows.is_empty())
}

impl QueuedAppend {
    /// Creates an append of deltas of a thread, and the receiver of its outcome.
    pub(super) fn new(
        thread: ThreadId,
        log: Uuid,
        rows: Vec<Arc<DeltaRow>>,
    ) -> (Self, oneshot::Receiver<GatherOutcome>) {
        let (done, outcome) = oneshot::channel();
        let bytes = rows.iter().map(|row| row.weight()).sum();
        let append = Self {
            thread,
            lane: lane(thread),
            log,
            rows,
            bytes,
            done,
        };
        (append, outcome)
    }
}

impl LogState {
    fn position(&self) -> LogPosition {
        LogPosition {
            log: self.id,
            newest: self.newest,
        }
    }

    /// Takes what the queue has for the next batch.
    fn next_batch(&mut self) -> Option<DeltaBatch> {
        let mut bytes = 0;
        let mut appends = Vec::new();
        while let Some(append) = self
            .queue
            .pop_front_if(|next| appends.is_empty() || bytes + next.bytes <= BATCH_BYTES_MAX)
        {
            bytes += append.bytes;
            appends.push(append);
        }
        self.queue_bytes -= bytes;
        if appends.is_empty() {
            return None;
        }
        self.newest += 1;
        for append in &appends {
            self.lanes[append.lane as usize].newest = self.newest;
            if let Some(hold) = self.holds.get_mut(&append.thread) {
                hold.last = Some(self.newest);
            }
        }
        Some(DeltaBatch::new(self.newest, appends, bytes))
    }
}
