//! Cache of thread heads, so that an append need not look them up.
//!
//! It is valid only while no other connection writes; SQLite's data version detects that.

use std::collections::HashMap;

use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, Error};

use super::chain::Link;
use super::fence::{self, ThreadRow};
use super::head;
use super::quarantine::Quarantine;

/// Maximum number of cached threads.
const THREADS_MAX: usize = 10_000;

/// Writer's cache of thread states.
#[derive(Debug, Default)]
pub(super) struct HeadCache {
    /// SQLite's data version, which changes when another connection has written.
    version: i64,
    threads: HashMap<ThreadId, State>,
    quarantine: Quarantine,
}

/// Cached state of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) row: ThreadRow,
    /// Whether the row exists already.
    pub(super) begun: bool,
    /// Link of the newest event.
    pub(super) link: Link,
    /// Newest delta, if there is any.
    pub(super) delta: Option<Seq>,
}

/// Reason why a thread accepts no appends.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClosedThread {
    /// The thread is being deleted.
    Deleting,
    /// The newest event is not where the fence points, or differs from what was written.
    Damaged(Seq),
    /// A reader found this record damaged.
    Quarantined(Seq),
}

impl State {
    /// Returns the head, as the fence sees it. A delta is deleted only by a later event, so the
    /// head never decreases.
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

    /// Clears the cache if another connection has written since the last refresh. Call it inside a
    /// new transaction.
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

    /// Clears the cache, because changes since the last refresh may have been rolled back.
    pub(super) fn forget(&mut self) {
        self.threads.clear();
    }

    /// Returns the state of a thread.
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

    /// Stores the new state of a thread.
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
    let Some(link) = head::end_of_chain(transaction, &row)? else {
        return Ok(Err(ClosedThread::Damaged(row.head)));
    };
    Ok(Ok(State {
        row,
        begun: true,
        link,
        delta: head::newest_delta(transaction, thread, row.number)?,
    }))
}
