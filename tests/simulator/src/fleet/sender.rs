//! The task that sends batches, one after another.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use raddle_core::Bug;

use super::journal::{CounterCheck, GatherOutcome, LogState, NodeJournal, QueuedAppend};
use super::{Commit, DeltaRow, LogId, NodeLogBatch, QueryFailure, Response, Statement, TaskResult};

/// Minimum time between the beginnings of two batches.
const INTERVAL_MIN: u64 = 5;

/// Time after an attempt without a known outcome until the next.
const RETRY_AFTER: u64 = 40;

/// Outcome of a batch.
enum SendOutcome {
    Stored,
    Sealed,
    Failed(QueryFailure),
}

/// State of the log's row.
enum CounterState {
    Open(u64),
    Sealed(u64),
    Removed,
}

struct BatchSender {
    journal: Rc<NodeJournal>,
    id: LogId,
    /// Counter in the log's row, as far as it is known.
    counter: u64,
    /// Batches that may have to be sent again, ascending, and the one that is being sent.
    sent: VecDeque<(u64, Rc<Vec<DeltaRow>>)>,
}

/// Sends batches until the process ends.
pub(super) async fn send_batches(journal: Rc<NodeJournal>) -> Option<TaskResult> {
    let mut sender = BatchSender::new(journal.clone());
    loop {
        poll_fn(|_| {
            let log = journal.log.borrow();
            match log.queue.is_empty() && log.checks.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
        sender.send().await;
        journal.port.sleep(INTERVAL_MIN).await;
    }
}

impl BatchSender {
    fn new(journal: Rc<NodeJournal>) -> Self {
        let id = journal.position().0;
        Self {
            journal,
            id,
            counter: 0,
            sent: VecDeque::new(),
        }
    }

    /// Sends what the queue has, and tells the callers.
    async fn send(&mut self) {
        let (appends, checks, n): (Vec<QueuedAppend>, _, _) = {
            let mut log = self.journal.log.borrow_mut();
            let appends: Vec<_> = log.queue.drain(..).collect();
            log.newest += u64::from(!appends.is_empty());
            (appends, std::mem::take(&mut log.checks), log.newest)
        };
        let id = self.id;
        if !checks.is_empty() {
            self.check(checks).await;
        }
        if appends.is_empty() {
            return;
        }
        if appends.len() > 1 {
            self.journal.reach("batch of several threads");
        }
        let rows = appends.iter().flat_map(|it| it.rows.iter().cloned());
        let rows = Rc::new(rows.collect());
        if Bug::BatchBeforeCommit.is_planted() {
            self.tell(&appends, GatherOutcome::Stored);
        }
        let outcome = match self.id == id {
            true => self.store(n, rows).await,
            false => GatherOutcome::Sealed,
        };
        self.tell(&appends, outcome);
    }

    fn tell(&self, appends: &[QueuedAppend], outcome: GatherOutcome) {
        let mut log = self.journal.log.borrow_mut();
        for append in appends {
            log.unresolved.remove(&append.thread);
            append.done.set(Some(outcome));
        }
        self.journal.port.notify();
    }

    /// Sends a batch, and the lost ones before it.
    async fn store(&mut self, n: u64, rows: Rc<Vec<DeltaRow>>) -> GatherOutcome {
        self.sent.push_back((n, rows));
        match self.send_all().await {
            SendOutcome::Stored => GatherOutcome::Stored,
            SendOutcome::Sealed => {
                self.begin_anew();
                GatherOutcome::Sealed
            }
            SendOutcome::Failed(failure) => {
                // Its number is not used again.
                self.sent.pop_back();
                GatherOutcome::Failed(failure)
            }
        }
    }

    /// Compares the counter, and sends the batches again that the database lost.
    async fn check(&mut self, checks: Vec<CounterCheck>) {
        let outcome = match self.look().await {
            Ok(CounterState::Open(stored)) => {
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
            Ok(CounterState::Sealed(_) | CounterState::Removed) => Ok(()),
            Err(failure) => Err(failure),
        };
        for check in checks {
            check.set(Some(outcome));
        }
        self.journal.port.notify();
    }

    /// Sends all batches after the counter, until it is known what became of each.
    async fn send_all(&mut self) -> SendOutcome {
        let mut may_have_happened = false;
        let mut is_retry = false;
        loop {
            let newest = self.sent.back().map_or(0, |(n, _)| *n);
            let next = self.sent.iter().find(|(n, _)| *n > self.counter);
            let Some((n, rows)) = next.cloned() else {
                return SendOutcome::Stored;
            };
            if is_retry {
                self.journal.port.sleep(RETRY_AFTER).await;
            }
            let batch = NodeLogBatch {
                log: self.id,
                n,
                after: self.counter,
                rows,
            };
            let query = Statement::Batch(Rc::new(batch));
            match self.journal.port.query(query, Commit::Nothing).await {
                Ok(Response::Moved(true)) => {
                    self.counter = n;
                    is_retry = false;
                    continue;
                }
                Ok(_) => {}
                Err(QueryFailure::Lost) if Bug::UnknownAsUnavailable.is_planted() => {
                    return SendOutcome::Failed(QueryFailure::NotSent);
                }
                Err(QueryFailure::Lost) => {
                    may_have_happened |= n == newest;
                    is_retry = true;
                    continue;
                }
                Err(failure) if !may_have_happened => return SendOutcome::Failed(failure),
                Err(_) => {
                    is_retry = true;
                    continue;
                }
            }
            match self.look().await {
                Ok(CounterState::Open(stored)) => {
                    is_retry = stored == self.counter;
                    self.set_counter(stored);
                }
                Ok(CounterState::Sealed(stored)) if stored >= newest => self.counter = stored,
                Ok(CounterState::Sealed(_) | CounterState::Removed) => {
                    self.journal.reach("batch refused by a seal");
                    return SendOutcome::Sealed;
                }
                Err(failure) if !may_have_happened => return SendOutcome::Failed(failure),
                Err(_) => is_retry = true,
            }
        }
    }

    /// Reads the log's row.
    async fn look(&self) -> Result<CounterState, QueryFailure> {
        let query = Statement::Counter(self.id);
        let counter = self.journal.port.query(query, Commit::Nothing).await;
        match counter.map_err(|_| QueryFailure::NotSent)? {
            Response::Counter(Some((n, true))) => Ok(CounterState::Sealed(n)),
            Response::Counter(Some((n, false))) => Ok(CounterState::Open(n)),
            _ => Ok(CounterState::Removed),
        }
    }

    /// Follows the counter in the row. It is lower than expected if the database lost batches.
    fn set_counter(&mut self, stored: u64) {
        if stored < self.counter {
            self.journal.reach("lost batch sent again");
            if Bug::LostBatchForgotten.is_planted() {
                self.sent.retain(|(n, _)| *n > self.counter);
            }
        }
        self.counter = stored;
    }

    /// Leaves the sealed log with all its threads, and begins another.
    fn begin_anew(&mut self) {
        let count = self.id.count + 1;
        let id = LogId { count, ..self.id };
        let former = std::mem::replace(&mut *self.journal.log.borrow_mut(), LogState::new(id));
        self.journal.states.borrow_mut().clear();
        for append in former.queue {
            append.done.set(Some(GatherOutcome::Sealed));
        }
        for check in former.checks {
            check.set(Some(Ok(())));
        }
        self.journal.port.notify();
        *self = Self::new(self.journal.clone());
    }
}
