//! What the writer remembers of threads, so that an append need not look it up.
//!
//! It holds only as long as nobody else writes; SQLite says when someone did.

use std::collections::HashMap;

use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, Error};

use super::chain::{self, Link};
use super::fence::{self, Row};

/// How many threads are remembered.
const THREADS_MAX: usize = 10_000;

/// What the writer remembers.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Changes when another connection has written.
    version: i64,
    threads: HashMap<ThreadId, State>,
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Its number; nothing before its first append.
    pub(super) number: Option<i64>,
    /// Its newest event.
    pub(super) event: Seq,
    /// The link of that.
    pub(super) link: Link,
    /// Its newest delta, if there is any.
    pub(super) delta: Option<Seq>,
}

/// A thread that takes no append.
#[derive(Clone, Copy, Debug)]
pub(super) enum Closed {
    /// It is being deleted.
    Going,
    /// Its newest event is not where the fence says.
    Damaged(Seq),
}

impl State {
    /// The head, as the fence sees it. A delta is deleted only by a later event, so it never goes back.
    pub(super) fn head(&self) -> Seq {
        self.delta.map_or(self.event, |delta| delta.max(self.event))
    }
}

impl Known {
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
    ) -> Result<Result<State, Closed>, Error> {
        if let Some(state) = self.threads.get(&thread) {
            return Ok(Ok(*state));
        }
        let Some(row) = fence::row(transaction, thread)? else {
            return Ok(Ok(State {
                number: None,
                event: Seq::ZERO,
                link: chain::origin(thread),
                delta: None,
            }));
        };
        look_up(transaction, row)
    }

    /// A thread stands here now.
    pub(super) fn remember(&mut self, thread: ThreadId, state: State) {
        self.threads.insert(thread, state);
    }
}

fn look_up(transaction: &Connection, row: Row) -> Result<Result<State, Closed>, Error> {
    if row.going {
        return Ok(Err(Closed::Going));
    }
    let Some(link) = fence::end_of_chain(transaction, row)? else {
        return Ok(Err(Closed::Damaged(row.head)));
    };
    Ok(Ok(State {
        number: Some(row.number),
        event: row.head,
        link,
        delta: fence::newest_delta(transaction, row.number)?,
    }))
}
