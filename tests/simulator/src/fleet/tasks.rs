//! Tasks of a node that wait for the database, and what they send.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use raddle_core::ports::AppendError;
use raddle_core::{Epoch, Seq};

use super::{Commit, Response, Statement};

/// Reason why a statement did not succeed, or may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryFailure {
    /// It was not sent.
    NotSent,
    /// It was sent, and its outcome is unknown.
    Lost,
}

/// A task of a node.
pub type Task = Pin<Box<dyn Future<Output = Option<TaskResult>>>>;

/// Result of a task.
#[derive(Debug)]
pub enum TaskResult {
    /// An append of an opening of a thread ended.
    Appended {
        /// Index of the thread.
        thread: usize,
        /// Opening that appended.
        opening: u64,
        /// Number of the append.
        attempt: u64,
        /// Its result.
        result: Result<Seq, AppendError>,
    },
    /// The head was read, if the database answered.
    Head(usize, u64, Option<Seq>),
    /// A thread was taken by this epoch, after the caller had folded it up to a record. Has the head.
    Taken(usize, Epoch, Seq, Result<Seq, QueryFailure>),
}

/// Message of a task to the world.
#[derive(Debug)]
pub enum Sent {
    /// A statement, and the condition of its commit.
    Query(u64, Statement, Commit),
    /// A request to be woken after these milliseconds.
    Timer(u64, u64),
}

/// Connection of the tasks of a node to the world.
#[derive(Debug, Default)]
pub struct Port {
    next: Cell<u64>,
    sent: RefCell<Vec<Sent>>,
    /// Responses, and `None` while one is awaited.
    answers: RefCell<BTreeMap<u64, Option<Result<Response, QueryFailure>>>>,
    /// Number of changes that another task may wait for.
    changes: Cell<u64>,
}

impl Port {
    /// Runs a statement.
    pub async fn query(
        &self,
        statement: Statement,
        commit: Commit,
    ) -> Result<Response, QueryFailure> {
        let id = self.id();
        self.sent
            .borrow_mut()
            .push(Sent::Query(id, statement, commit));
        poll_fn(|_| self.answered(id)).await
    }

    /// Waits.
    pub async fn sleep(&self, ms: u64) {
        let timer = self.timer(ms);
        poll_fn(|_| self.answered(timer)).await.ok();
    }

    /// Starts a timer.
    pub fn timer(&self, ms: u64) -> u64 {
        let id = self.id();
        self.sent.borrow_mut().push(Sent::Timer(id, ms));
        id
    }

    /// Whether a timer has ended.
    pub fn has_ended(&self, timer: u64) -> bool {
        self.answers
            .borrow()
            .get(&timer)
            .is_none_or(Option::is_some)
    }

    /// Waits for a condition until a timer ends. Returns whether the condition was met.
    pub async fn wait(&self, ms: u64, mut condition: impl FnMut() -> bool) -> bool {
        if condition() {
            return true;
        }
        let timer = self.timer(ms);
        poll_fn(|_| match (condition(), self.has_ended(timer)) {
            (true, _) => Poll::Ready(true),
            (false, true) => Poll::Ready(false),
            (false, false) => Poll::Pending,
        })
        .await
    }

    /// Tells all tasks that something changed.
    pub fn notify(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Number of changes so far.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Delivers a response. Returns false if none is awaited any more: it is late, or a duplicate.
    pub fn answer(&self, id: u64, answer: Result<Response, QueryFailure>) -> bool {
        match self.answers.borrow_mut().get_mut(&id) {
            Some(slot) if slot.is_none() => {
                *slot = Some(answer);
                true
            }
            _ => false,
        }
    }

    /// Takes what the tasks sent.
    pub fn take_sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.sent.borrow_mut())
    }

    fn id(&self) -> u64 {
        let id = self.next.get() + 1;
        self.next.set(id);
        self.answers.borrow_mut().insert(id, None);
        id
    }

    fn answered(&self, id: u64) -> Poll<Result<Response, QueryFailure>> {
        let mut answers = self.answers.borrow_mut();
        match answers.get(&id) {
            Some(None) => Poll::Pending,
            Some(Some(_)) | None => match answers.remove(&id).flatten() {
                Some(answer) => Poll::Ready(answer),
                None => Poll::Ready(Err(QueryFailure::Lost)),
            },
        }
    }
}
