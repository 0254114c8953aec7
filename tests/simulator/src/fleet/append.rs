//! One append: one statement, or a part of a batch of the node log.

use std::rc::Rc;

use raddle_core::ports::AppendError;
use raddle_core::{Bug, Class, Event, Record, RecordBody, Seq};

use super::journal::{GatherOutcome, NodeJournal, QueuedAppend, STATEMENT_MAX, ThreadState};
use super::statement::ThreadRow;
use super::{AppendStatement, Commit, DeltaRow, LogId, QueryFailure, Response, Statement};
use crate::check::WriterId;
use crate::hash::Hash;
use crate::store::{Append, LogRow};

/// Maximum number of attempts while other nodes take the thread or settle a doubt.
const ATTEMPTS_MAX: usize = 5;

impl NodeJournal {
    /// Appends records to a thread.
    pub(super) async fn append(
        &self,
        append: &Append,
        by: WriterId,
        attempt: u64,
    ) -> Result<Seq, AppendError> {
        let (thread, after) = (append.thread, append.after);
        let rows: Vec<Rc<LogRow>> = append.records.iter().map(LogRow::of).collect();
        if self.is_in_doubt(thread) {
            self.settle(thread).await.map_err(repeatable)?;
        }
        if append.class == Class::Process
            && let Some(result) = self.gather(append, &rows, by, attempt).await
        {
            return result;
        }
        self.resolve(thread).await.map_err(repeatable)?;
        if append.records.iter().any(|it| owner(it).is_some()) {
            self.begin().await.map_err(repeatable)?;
        }
        let position = self.position();
        let mut expected = self.states.borrow().get(&thread).cloned();
        expected.take_if(|it| it.newest() != after);
        // The rows of a fork come before its first record.
        let after = if append.copy.is_some() {
            Seq::ZERO
        } else {
            after
        };
        for _ in 0..ATTEMPTS_MAX {
            let state = match expected.take() {
                Some(cached) => cached,
                None => self.load(thread).await.map_err(repeatable)?,
            };
            if state.newest() != after {
                return Err(AppendError::Conflict);
            }
            if state.row.writer.is_some_and(|writer| writer != position.0) {
                return Err(AppendError::Conflict);
            }
            let row = row_after(&state, append, &rows, position);
            let statement = Rc::new(AppendStatement {
                thread,
                by,
                attempt,
                expected: state.row.clone(),
                copy: append.copy.clone(),
                gathered: state.gathered.clone(),
                records: rows.clone(),
                row,
            });
            if self.run(&statement, append.class).await? {
                self.moved(&statement, position);
                return Ok(statement.row.head);
            }
            // Another node took the thread or wrote to it.
            self.states.borrow_mut().remove(&thread);
            let current = self.load(thread).await.map_err(repeatable)?;
            if current.row.is_live && current.row.link != state.row.link {
                return Err(AppendError::Conflict);
            }
            expected = Some(current);
        }
        Err(AppendError::Unavailable("taken again and again".to_owned()))
    }

    /// Runs the statement. Returns whether it had an effect.
    async fn run(
        &self,
        statement: &Rc<AppendStatement>,
        class: Class,
    ) -> Result<bool, AppendError> {
        // The node lives on when the primary is lost, and nothing but batches is sent again. So a row
        // must not lose a head after which the log has deltas, whatever the class of the records.
        let commit = match class {
            Class::Process if Bug::CommitClassLeaked.is_planted() => Commit::Nothing,
            Class::Power | Class::Process => Commit::Standby,
        };
        let thread = statement.thread;
        let query = Statement::Append(statement.clone());
        match self.port.query(query, commit).await {
            Ok(Response::Moved(moved)) => Ok(moved),
            Err(QueryFailure::Lost) if Bug::UnknownAsUnavailable.is_planted() => {
                self.states.borrow_mut().remove(&thread);
                Err(AppendError::Unavailable("no answer".to_owned()))
            }
            Err(QueryFailure::Lost) => {
                self.doubt(thread);
                Err(AppendError::Unknown("no answer".to_owned()))
            }
            Ok(_) | Err(QueryFailure::NotSent) => {
                self.states.borrow_mut().remove(&thread);
                Err(AppendError::Unavailable("not sent".to_owned()))
            }
        }
    }

    /// Appends deltas to the node log. `None` if they must go to the thread's rows.
    async fn gather(
        &self,
        append: &Append,
        rows: &[Rc<LogRow>],
        by: WriterId,
        attempt: u64,
    ) -> Option<Result<Seq, AppendError>> {
        let thread = append.thread;
        let is_delta = |row: &Rc<LogRow>| matches!(row.record.body, RecordBody::Delta(_));
        let last = rows.last().filter(|_| rows.iter().all(is_delta))?;
        let row = |row: &Rc<LogRow>| DeltaRow {
            thread,
            by,
            attempt,
            row: row.clone(),
        };
        let rows: Vec<DeltaRow> = rows.iter().map(row).collect();
        let done = Rc::default();
        {
            let (mut log, mut states) = (self.log.borrow_mut(), self.states.borrow_mut());
            let state = states.get_mut(&thread)?;
            let gathers = state.row.is_live
                && state.row.writer == Some(log.id)
                && state.newest() == append.after;
            if !gathers || log.unresolved.contains(&thread) {
                return None;
            }
            log.unresolved.insert(thread);
            let batch = log.newest + 1;
            log.holds.entry(thread).or_insert(batch);
            state.gathered.extend_from_slice(&rows);
            log.queue.push_back(QueuedAppend {
                thread,
                rows,
                done: Rc::clone(&done),
            });
        }
        self.port.notify();
        self.port.wait(STATEMENT_MAX, || done.get().is_some()).await;
        Some(match done.get() {
            None => {
                self.doubt(thread);
                Err(AppendError::Unknown("no answer".to_owned()))
            }
            Some(GatherOutcome::Stored) => Ok(last.record.seq),
            Some(GatherOutcome::Sealed) => {
                self.states.borrow_mut().remove(&thread);
                Err(AppendError::Conflict)
            }
            Some(GatherOutcome::Failed(_)) => {
                self.states.borrow_mut().remove(&thread);
                Err(AppendError::Unavailable("not sent".to_owned()))
            }
        })
    }

    /// Begins the node's log, unless it has begun.
    async fn begin(&self) -> Result<(), QueryFailure> {
        let (id, has_row) = {
            let log = self.log.borrow();
            (log.id, log.has_row)
        };
        if has_row {
            return Ok(());
        }
        let statement = Statement::Begin(id);
        self.port.query(statement, Commit::Standby).await?;
        let mut log = self.log.borrow_mut();
        log.has_row |= log.id == id;
        Ok(())
    }
}

/// Returns the row after an append.
fn row_after(
    state: &ThreadState,
    append: &Append,
    rows: &[Rc<LogRow>],
    position: (LogId, u64),
) -> ThreadRow {
    let mut row = state.row.clone();
    row.is_live = true;
    row.head = state.newest();
    for it in rows {
        row.head = it.record.seq;
        let RecordBody::Event(event) = &it.record.body else {
            continue;
        };
        let mut link = Hash(row.link);
        link.add_bytes(it.json.as_bytes());
        row.link = link.0;
        if let Some(node) = owner(&it.record) {
            row.writer = Some(position.0);
            row.owner = Some(node.to_owned());
        }
        if let Event::Released {} = **event {
            row.writer = None;
            row.owner = None;
        }
    }
    debug_assert!(append.records.len() == rows.len());
    if row.writer == Some(position.0) {
        row.since = position.1;
    }
    row
}

fn owner(record: &Record) -> Option<&str> {
    match &record.body {
        RecordBody::Event(event) => match &**event {
            Event::Owned(it) => Some(&it.node),
            _ => None,
        },
        RecordBody::Delta(_) => None,
    }
}

/// Returns the error of a write that may be repeated.
pub(super) fn repeatable(failure: QueryFailure) -> AppendError {
    AppendError::Unavailable(format!("{failure:?}"))
}
