//! What the writer remembers of threads, so that an append need not look it up.
//!
//! It holds only as long as nobody else writes; SQLite says when someone did.

use std::collections::HashMap;

use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, Error};

use super::chain::Link;
use super::fence::{self, ThreadRow};
use super::quarantine::Quarantine;

/// How many threads are remembered.
const THREADS_MAX: usize = 10_000;

/// What the writer remembers.
#[derive(Debug, Default)]
pub(super) struct HeadCache {
    /// Changes when another connection has written.
    version: i64,
    threads: HashMap<ThreadId, State>,
    quarantine: Quarantine,
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Its row.
    pub(super) row: ThreadRow,
    /// Whether the row is there already.
    pub(super) begun: bool,
    /// The link of its newest event.
    pub(super) link: Link,
    /// Its newest delta, if there is any.
    pub(super) delta: Option<Seq>,
}

/// A thread that takes no append.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClosedThread {
    /// It is being deleted.
    Deleting,
    /// Its newest event is not where the fence says, or not what was written.
    Damaged(Seq),
    /// Whoever read this record found it damaged.
    Quarantined(Seq),
}

impl State {
    /// The head, as the fence sees it. A delta is deleted only by a later event, so it never goes back.
    pub(super) fn head(&self) -> Seq {
        let event = self.row.head;
        self.delta.map_or(event, |delta| delta.max(event))
    }
}

impl HeadCache {
    pub(super) fn new(quarantine: Quarantine) -> Self {
        Self {
            quarantine,
            ..Self::default()
        }
    }

    /// Inside a new transaction: forgets everything if someone else has written since the last.
    pub(super) fn refresh(&mut self, transaction: &Connection) -> Result<(), Error> {
        let version = transaction
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get(0))?;
        if version != self.version || self.threads.len() > THREADS_MAX {
            self.threads.clear();
        }
        self.version = version;
        Ok(())
    }

    /// What was done since the last refresh may not stand.
    pub(super) fn forget(&mut self) {
        self.threads.clear();
    }

    /// Where a thread stands.
    pub(super) fn thread(
        &self,
        transaction: &Connection,
        thread: ThreadId,
    ) -> Result<Result<State, ClosedThread>, Error> {
        let state = self.find(transaction, thread)?;
        Ok(state.and_then(|state| {
            let damaged = self.quarantine.at(state.row.number);
            damaged.map_or(Ok(state), |at| Err(ClosedThread::Quarantined(at)))
        }))
    }

    fn find(
        &self,
        transaction: &Connection,
        thread: ThreadId,
    ) -> Result<Result<State, ClosedThread>, Error> {
        if let Some(state) = self.threads.get(&thread) {
            return Ok(Ok(*state));
        }
        let Some(row) = fence::row(transaction, thread)? else {
            let row = ThreadRow::new(thread);
            return Ok(Ok(State {
                row,
                begun: false,
                link: row.origin,
                delta: None,
            }));
        };
        look_up(transaction, thread, row)
    }

    /// A thread stands here now.
    pub(super) fn remember(&mut self, thread: ThreadId, state: State) {
        self.threads.insert(thread, state);
    }
}

fn look_up(
    transaction: &Connection,
    thread: ThreadId,
    row: ThreadRow,
) -> Result<Result<State, ClosedThread>, Error> {
    if row.deleting {
        return Ok(Err(ClosedThread::Deleting));
    }
    let Some(link) = fence::end_of_chain(transaction, &row)? else {
        return Ok(Err(ClosedThread::Damaged(row.head)));
    };
    Ok(Ok(State {
        row,
        begun: true,
        link,
        delta: fence::newest_delta(transaction, thread, row.number)?,
    }))
}
