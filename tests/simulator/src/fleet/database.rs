//! The database: tables, statements that are atomic, and a standby that follows.

use std::collections::BTreeMap;
use std::rc::Rc;

use raddle_core::{Bug, Seq};

use super::statement::ThreadRow;
use super::{Commit, DeltaRow, LogId, Response, Statement};
use crate::store::Log;

/// Time after which a commit that waited for nothing has reached the standby.
const REPLICATION_LAG_MAX: u64 = 1_000;

#[derive(Clone, Debug, Default)]
struct NodeLogRow {
    n: u64,
    is_sealed: bool,
    batches: BTreeMap<u64, Rc<Vec<DeltaRow>>>,
}

#[derive(Clone, Debug, Default)]
struct Tables {
    threads: Vec<(Option<ThreadRow>, Log)>,
    node_logs: BTreeMap<LogId, NodeLogRow>,
}

/// A primary, its standby, and perhaps a former primary that does not know that it is one.
#[derive(Debug)]
pub struct Database {
    primary: Tables,
    standby: Tables,
    /// Statements that the standby may not have, and their times.
    tail: Vec<(u64, Statement)>,
    former: Option<Tables>,
    /// State that a replica has applied, for the bug that reads from it.
    replica: Option<Tables>,
    /// Threads as a reader of the primary sees them.
    visible: Vec<Log>,
    /// Number of changes of the primary.
    pub generation: u64,
}

impl Database {
    /// Creates a database with this many threads that have not begun.
    pub fn new(threads: usize) -> Self {
        let empty = Tables {
            threads: vec![(None, Log::default()); threads],
            node_logs: BTreeMap::new(),
        };
        Self {
            primary: empty.clone(),
            standby: empty,
            tail: Vec::new(),
            former: None,
            replica: None,
            visible: vec![Log::default(); threads],
            generation: 0,
        }
    }

    /// Makes an id for another thread usable.
    pub fn add(&mut self) {
        let tables = [Some(&mut self.primary), Some(&mut self.standby)];
        let others = [self.former.as_mut(), self.replica.as_mut()];
        for tables in tables.into_iter().chain(others).flatten() {
            tables.threads.push((None, Log::default()));
        }
        self.visible.push(Log::default());
    }

    /// Returns a thread as a reader of the primary sees it.
    pub fn log(&self, thread: usize) -> &Log {
        &self.visible[thread]
    }

    /// Returns the row of a thread.
    pub fn row(&self, thread: usize) -> Option<&ThreadRow> {
        self.primary.threads[thread].0.as_ref()
    }

    /// Whether a node log accepts no batches.
    pub fn is_sealed(&self, log: LogId) -> bool {
        self.primary.is_sealed(log)
    }

    /// Whether a node log may have deltas of a thread after this number.
    pub fn accepts(&self, log: LogId, thread: usize, after: Seq) -> bool {
        let row = self.row(thread);
        row.is_some_and(|row| row.is_live && row.writer == Some(log) && row.head < after)
    }

    /// Whether the standby may not have all batches.
    pub fn has_unreplicated_batch(&self) -> bool {
        let mut tail = self.tail.iter();
        tail.any(|(_, it)| matches!(it, Statement::Batch(_)))
    }

    /// Whether the last statement that changed something was a seal.
    pub fn has_just_sealed(&self) -> bool {
        matches!(self.tail.last(), Some((_, Statement::Seal(_))))
    }

    /// Runs a statement on the primary. Returns the response, and whether it changed something. A
    /// commit whose wait broke off is visible, and the standby does not have it.
    pub fn run(&mut self, now: u64, statement: &Statement, commit: Commit) -> (Response, bool) {
        if let Statement::Load(_) | Statement::Head(_) = statement
            && Bug::HeadFromReplica.is_planted()
            && let Some(replica) = &mut self.replica
        {
            return replica.run(statement);
        }
        let (response, changed) = self.primary.run(statement);
        if changed {
            self.tail.push((now, statement.clone()));
            for thread in statement.threads() {
                self.visible[thread] = self.primary.visible(thread);
            }
        }
        if commit == Commit::Standby {
            self.replicate(usize::MAX);
        }
        (response, changed)
    }

    /// Runs a statement on the former primary, if it still runs.
    pub fn run_on_former(&mut self, statement: &Statement) -> Option<(Response, bool)> {
        Some(self.former.as_mut()?.run(statement))
    }

    /// Ends the former primary.
    pub fn end_former(&mut self) {
        self.former = None;
    }

    /// Makes the standby the primary. A share of what it did not have has reached it nevertheless.
    /// Returns the statements whose effects are gone.
    pub fn fail_over(&mut self, now: u64, kept_percent: u64, former_runs: bool) -> Vec<Statement> {
        let is_old = |(at, _): &&(u64, Statement)| at + REPLICATION_LAG_MAX <= now;
        let old = self.tail.iter().take_while(is_old).count();
        let recent = (self.tail.len() - old) as u64 * kept_percent / 100;
        self.replicate(old + usize::try_from(recent).unwrap_or(0));
        let lost = self.tail.drain(..).map(|(_, it)| it).collect();
        let former = std::mem::replace(&mut self.primary, self.standby.clone());
        self.former = former_runs.then_some(former);
        self.replica = None;
        self.generation += 1;
        for thread in 0..self.visible.len() {
            self.visible[thread] = self.primary.visible(thread);
        }
        lost
    }

    fn replicate(&mut self, count: usize) {
        if Bug::HeadFromReplica.is_planted() && !self.tail.is_empty() {
            // A replica confirms what it has written, and shows it later.
            self.replica = Some(self.standby.clone());
        }
        let count = count.min(self.tail.len());
        for (_, statement) in self.tail.drain(..count) {
            self.standby.run(&statement);
        }
    }
}

impl Tables {
    fn is_sealed(&self, log: LogId) -> bool {
        self.node_logs.get(&log).is_none_or(|it| it.is_sealed)
    }

    /// Deltas that only the node log has, ascending.
    fn gathered(&self, thread: usize) -> Vec<DeltaRow> {
        let Some(row) = self.threads[thread].0.as_ref().filter(|row| row.is_live) else {
            return Vec::new();
        };
        let log = row.writer.and_then(|log| self.node_logs.get(&log));
        let batches = log
            .into_iter()
            .flat_map(|log| log.batches.range(row.since + 1..));
        let rows = batches.flat_map(|(_, rows)| rows.iter());
        let mine = rows.filter(|it| it.thread == thread && it.row.record.seq > row.head);
        mine.cloned().collect()
    }

    fn visible(&self, thread: usize) -> Log {
        let mut log = self.threads[thread].1.clone();
        let gathered: Vec<_> = self.gathered(thread).into_iter().map(|it| it.row).collect();
        log.extend(&gathered);
        log
    }

    fn run(&mut self, statement: &Statement) -> (Response, bool) {
        let moved = |moved| (Response::Moved(moved), moved);
        match statement {
            Statement::Append(it) => {
                let (row, log) = &mut self.threads[it.thread];
                let admits = it.admits(row.as_ref());
                if admits {
                    let fence = row.as_ref().map_or(it.row.fence, |row| row.fence);
                    *row = Some(ThreadRow {
                        fence,
                        ..it.row.clone()
                    });
                    log.extend(it.copy.as_deref().map_or(&[], Vec::as_slice));
                    let gathered: Vec<_> = it.gathered.iter().map(|it| it.row.clone()).collect();
                    log.extend(&gathered);
                    log.extend(&it.records);
                }
                moved(admits)
            }
            Statement::Begin(log) => {
                let is_new = !self.node_logs.contains_key(log);
                self.node_logs.entry(*log).or_default();
                moved(is_new)
            }
            Statement::Settle(thread) => {
                let row = self.threads[*thread].0.get_or_insert_default();
                row.fence += 1;
                (Response::Row(Some(row.clone()), Vec::new()), true)
            }
            Statement::TakeUngathered(thread) => {
                let row = self.threads[*thread].0.as_mut();
                let row = row.filter(|row| row.is_live && row.writer.is_none());
                let head = row.map(|row| {
                    row.fence += 1;
                    row.head
                });
                (Response::Head(head), head.is_some())
            }
            Statement::Copy(thread, expected, rows) => {
                let (row, log) = &mut self.threads[*thread];
                let row = row.as_mut().filter(|row| {
                    row.is_live && row.head == expected.head && row.fence == expected.fence
                });
                let Some(row) = row else {
                    return moved(false);
                };
                let rows: Vec<_> = rows.iter().map(|it| it.row.clone()).collect();
                log.extend(&rows);
                row.head = rows.last().map_or(row.head, |last| last.record.seq);
                row.fence += 1;
                row.writer = None;
                row.owner = None;
                moved(true)
            }
            Statement::Seal(log) => {
                let log = self.node_logs.get_mut(log).filter(|log| !log.is_sealed);
                moved(log.map(|log| log.is_sealed = true).is_some())
            }
            Statement::IsSealed(log) => (Response::Moved(self.is_sealed(*log)), false),
            Statement::Load(thread) => {
                let row = self.threads[*thread].0.clone();
                (Response::Row(row, self.gathered(*thread)), false)
            }
            Statement::Head(thread) => {
                let row = self.threads[*thread].0.as_ref().filter(|row| row.is_live);
                let head = row.map(|row| row.head);
                let newest = self.gathered(*thread).last().map(|it| it.row.record.seq);
                (Response::Head(newest.max(head)), false)
            }
            Statement::Batch(it) => {
                let is_open = |log: &&mut NodeLogRow| {
                    log.n == it.after && (!log.is_sealed || Bug::FlagReadWithoutLock.is_planted())
                };
                let Some(log) = self.node_logs.get_mut(&it.log).filter(is_open) else {
                    return moved(false);
                };
                log.n = it.n;
                log.batches.insert(it.n, it.rows.clone());
                moved(true)
            }
            Statement::Counter(log) => {
                let log = self.node_logs.get(log);
                (Response::Counter(log.map(|it| (it.n, it.is_sealed))), false)
            }
            Statement::SaveBase(thread, base) => {
                let (row, log) = &mut self.threads[*thread];
                let head = base.thread.head();
                let fits = row.as_ref().is_some_and(|it| it.is_live && head <= it.head);
                if fits {
                    log.save_base(base);
                }
                moved(fits)
            }
            Statement::Delete(thread) => {
                let (row, log) = &mut self.threads[*thread];
                // The row stays, so that the index of the thread is never used again.
                if let Some(row) = row {
                    row.is_live = false;
                    row.fence += 1;
                }
                log.clear();
                moved(true)
            }
        }
    }
}
