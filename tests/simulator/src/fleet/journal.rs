//! The journal of a node: what it knows of the threads' rows, its doubts, and its node log.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use raddle_core::{Bug, Epoch, Seq};

use super::sender::send_batches;
use super::statement::{AppendStatement, ThreadRow};
use super::tasks::Port;
use super::{Commit, DeltaRow, LogId, QueryFailure, Response, Statement, Task, TaskResult};
use crate::check::WriterId;
use crate::store::Append;

/// Time that a statement may take, in milliseconds.
pub(super) const STATEMENT_MAX: u64 = 400;

/// Everything that an append relies on.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadState {
    pub(super) row: ThreadRow,
    /// Deltas after the head, which only the node log has, ascending.
    pub(super) gathered: Vec<DeltaRow>,
}

impl ThreadState {
    /// Newest record.
    pub(super) fn newest(&self) -> Seq {
        let newest = self.gathered.last().map(|it| it.row.record.seq);
        newest.unwrap_or(self.row.head)
    }
}

/// Outcome of an append to the node log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatherOutcome {
    Stored,
    Sealed,
    Failed(QueryFailure),
}

/// Deltas of one append that wait for a batch, and the place of the outcome.
#[derive(Debug)]
pub(super) struct QueuedAppend {
    pub(super) thread: usize,
    pub(super) rows: Vec<DeltaRow>,
    pub(super) done: Rc<Cell<Option<GatherOutcome>>>,
}

/// A request to compare the counter, with the place of the outcome.
pub(super) type CounterCheck = Rc<Cell<Option<Result<(), QueryFailure>>>>;

/// The node's own log.
#[derive(Debug)]
pub(super) struct LogState {
    pub(super) id: LogId,
    pub(super) has_row: bool,
    /// Number of the newest batch, which may not be sent yet.
    pub(super) newest: u64,
    pub(super) queue: VecDeque<QueuedAppend>,
    pub(super) checks: Vec<CounterCheck>,
    /// Threads with an append that is queued or on its way.
    pub(super) unresolved: BTreeSet<usize>,
    /// First batch that a thread needs until an append moves its head.
    pub(super) holds: BTreeMap<usize, u64>,
}

impl LogState {
    pub(super) fn new(id: LogId) -> Self {
        Self {
            id,
            has_row: false,
            newest: 0,
            queue: VecDeque::new(),
            checks: Vec::new(),
            unresolved: BTreeSet::new(),
            holds: BTreeMap::new(),
        }
    }
}

/// The journal of one process.
#[derive(Debug)]
pub struct NodeJournal {
    /// Connection to the database.
    pub port: Port,
    pub(super) log: RefCell<LogState>,
    pub(super) states: RefCell<BTreeMap<usize, ThreadState>>,
    in_doubt: RefCell<BTreeMap<usize, u64>>,
    doubts: Cell<u64>,
    /// Situations that were reached, by their names.
    pub reached: RefCell<Vec<&'static str>>,
}

impl NodeJournal {
    /// Creates the journal of a process.
    pub fn new(process: (usize, u64)) -> Rc<Self> {
        let id = LogId { process, count: 0 };
        Rc::new(Self {
            port: Port::default(),
            log: RefCell::new(LogState::new(id)),
            states: RefCell::default(),
            in_doubt: RefCell::default(),
            doubts: Cell::default(),
            reached: RefCell::default(),
        })
    }

    pub(super) fn reach(&self, what: &'static str) {
        self.reached.borrow_mut().push(what);
    }

    /// The log, and its newest batch.
    pub(super) fn position(&self) -> (LogId, u64) {
        let log = self.log.borrow();
        (log.id, log.newest)
    }

    pub(super) fn is_in_doubt(&self, thread: usize) -> bool {
        self.in_doubt.borrow().contains_key(&thread)
    }

    /// Notes that the outcome of a write is unknown.
    pub(super) fn doubt(&self, thread: usize) {
        self.states.borrow_mut().remove(&thread);
        self.doubts.set(self.doubts.get() + 1);
        self.in_doubt.borrow_mut().insert(thread, self.doubts.get());
    }

    /// Waits until no deltas of a thread are on their way.
    pub(super) async fn resolve(&self, thread: usize) -> Result<(), QueryFailure> {
        let is_resolved = || !self.log.borrow().unresolved.contains(&thread);
        match self.port.wait(STATEMENT_MAX, is_resolved).await {
            true => Ok(()),
            false => Err(QueryFailure::NotSent),
        }
    }

    /// Sends the batches again that the database lost, if the thread has deltas in them.
    pub(super) async fn confirm(&self, thread: usize) -> Result<(), QueryFailure> {
        let check = CounterCheck::default();
        {
            let mut log = self.log.borrow_mut();
            if !log.holds.contains_key(&thread) {
                return Ok(());
            }
            log.checks.push(check.clone());
        }
        self.port.notify();
        let is_done = || check.get().is_some();
        self.port.wait(STATEMENT_MAX, is_done).await;
        check.get().unwrap_or(Err(QueryFailure::NotSent))
    }

    /// Reads the state of a thread.
    pub(super) async fn load_row(&self, thread: usize) -> Result<ThreadState, QueryFailure> {
        let statement = Statement::Load(thread);
        match self.port.query(statement, Commit::Nothing).await? {
            Response::Row(row, gathered) => Ok(ThreadState {
                row: row.unwrap_or_default(),
                gathered,
            }),
            _ => Err(QueryFailure::NotSent),
        }
    }

    /// Reads the state of a thread, after lost batches were sent again.
    pub(super) async fn load(&self, thread: usize) -> Result<ThreadState, QueryFailure> {
        self.confirm(thread).await?;
        self.load_row(thread).await
    }

    /// Returns the head of a thread.
    pub(super) async fn head(&self, thread: usize) -> Result<Seq, QueryFailure> {
        if self.is_in_doubt(thread) {
            return self.settle(thread).await;
        }
        let statement = Statement::Head(thread);
        match self.port.query(statement, Commit::Nothing).await? {
            Response::Head(head) => Ok(head.unwrap_or_default()),
            _ => Err(QueryFailure::NotSent),
        }
    }

    /// Settles a doubt by a write that commits synchronously.
    pub(super) async fn settle(&self, thread: usize) -> Result<Seq, QueryFailure> {
        let doubts = self.doubts.get();
        self.resolve(thread).await?;
        let (statement, commit) = match Bug::DoubtSettledByRead.is_planted() {
            true => (Statement::Load(thread), Commit::Nothing),
            false => (Statement::Settle(thread), Commit::Standby),
        };
        let Response::Row(row, _) = self.port.query(statement, commit).await? else {
            return Err(QueryFailure::NotSent);
        };
        let row = row.unwrap_or_default();
        let mut head = row.head;
        if row.writer.is_some() {
            // The outage that caused the doubt may have lost batches.
            self.confirm(thread).await?;
            head = self.load_row(thread).await?.newest();
        }
        self.states.borrow_mut().remove(&thread);
        let mut in_doubt = self.in_doubt.borrow_mut();
        if in_doubt.get(&thread).is_some_and(|it| *it <= doubts) {
            in_doubt.remove(&thread);
        }
        self.reach("unknown settled");
        Ok(if row.is_live { head } else { Seq::ZERO })
    }

    /// Follows an append that moved the head in the thread's row.
    pub(super) fn moved(&self, it: &AppendStatement, position: (LogId, u64)) {
        let state = ThreadState {
            row: it.row.clone(),
            gathered: Vec::new(),
        };
        self.states.borrow_mut().insert(it.thread, state);
        let mut log = self.log.borrow_mut();
        let has = |hold: &u64| *hold <= position.1;
        if log.id == position.0 && log.holds.get(&it.thread).is_some_and(has) {
            log.holds.remove(&it.thread);
        }
    }
}

/// Returns the task that sends batches.
pub fn sends_batches(journal: &Rc<NodeJournal>) -> Task {
    Box::pin(send_batches(journal.clone()))
}

/// Returns the task of an append.
pub fn appends(journal: &Rc<NodeJournal>, append: Append, by: WriterId, attempt: u64) -> Task {
    let journal = journal.clone();
    Box::pin(async move {
        let result = journal.append(&append, by, attempt).await;
        Some(TaskResult::Appended {
            thread: append.thread,
            opening: by.1,
            attempt,
            result,
        })
    })
}

/// Returns the task that reads the head of a thread.
pub fn reads_head(journal: &Rc<NodeJournal>, thread: usize, opening: u64) -> Task {
    let journal = journal.clone();
    Box::pin(async move {
        let head = journal.head(thread).await.ok();
        Some(TaskResult::Head(thread, opening, head))
    })
}

/// Returns the task that takes a thread from its former owner.
pub fn takes(
    journal: &Rc<NodeJournal>,
    thread: usize,
    epoch: Epoch,
    folded: Seq,
    former: Option<String>,
) -> Task {
    let journal = journal.clone();
    Box::pin(async move {
        let head = journal.take(thread, former.as_deref()).await;
        Some(TaskResult::Taken(thread, epoch, folded, head))
    })
}

/// Returns the task that sends lost batches again before the thread is read.
pub fn prepares_read(journal: &Rc<NodeJournal>, thread: usize) -> Task {
    let journal = journal.clone();
    Box::pin(async move {
        // The reader tries again.
        journal.confirm(thread).await.ok();
        None
    })
}
