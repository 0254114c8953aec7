//! Checker of histories, a pure function.
//!
//! A life is one period in which a process writes a thread. Its first record in the log is a barrier,
//! so the barriers divide the final log into segments of one life each. Each later owner read the log
//! before its barrier; the checker compares every acknowledged append with what that owner found.

mod index;
mod thread;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::history::{HistoryLine, RecordNote};

/// Losses that the fault of a run allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedLosses {
    /// Every acknowledged record is there.
    None,
    /// The primary was lost, with acknowledged appends of the class process that no standby had.
    Unsynced,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryViolation {
    pub thread: usize,
    pub promise: BrokenPromise,
    /// Number of the record that shows it.
    pub seq: u64,
}

/// Promise of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BrokenPromise {
    /// The numbers of the final log do not rise.
    NumbersFall,
    /// The epoch of a barrier is not above that of the barrier before it.
    EpochsFall,
    /// The log has a record that the owner of its segment never wrote under this number.
    ForeignRecord,
    /// The log has a record of an append that was reported as failed.
    FailedAppendStored,
    /// An acknowledged append that survives the loss of power is not in the log.
    EventLost,
    /// An acknowledged append that survives the loss of the process is not in the log, although the
    /// fault allows no loss, or records after it are there.
    DeltaLost,
    /// Lost deltas without a barrier that makes their numbers expired cursors.
    LossNotExpired,
    /// A number has different contents.
    NumberReused,
    /// A record that an owner found before its barrier is gone.
    RecordVanished,
    /// The log has a record before a barrier that the owner of that barrier did not find.
    RecordAppeared,
    /// An append was acknowledged that began after a later owner had taken the thread.
    FormerOwnerWrite,
    /// A turn did not end, or ended more than once.
    TurnEnds,
}

/// Counts of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryFigures {
    pub runs: u64,
    pub records: u64,
    pub owners: u64,
    pub turns: u64,
    /// Acknowledged appends.
    pub acknowledged: u64,
    pub conflicts: u64,
    pub failed: u64,
    /// Appends whose outcome was unknown, and those of them that are in the log.
    pub unknown: u64,
    pub unknown_stored: u64,
    /// Acknowledged records of the class process that were lost, all with expired numbers, and the
    /// number of losses.
    pub lost_records: u64,
    pub losses: u64,
    /// Lost records among them that a stale primary acknowledged after a later owner's take.
    pub stale: u64,
}

impl AddAssign for HistoryFigures {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.records += other.records;
        self.owners += other.owners;
        self.turns += other.turns;
        self.acknowledged += other.acknowledged;
        self.conflicts += other.conflicts;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.unknown_stored += other.unknown_stored;
        self.lost_records += other.lost_records;
        self.losses += other.losses;
        self.stale += other.stale;
    }
}

/// Result of the checker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryVerdict {
    pub violations: Vec<HistoryViolation>,
    pub figures: HistoryFigures,
}

/// Checks a history against the final logs of its threads.
pub fn check(
    lines: &[HistoryLine],
    logs: &BTreeMap<usize, Vec<RecordNote>>,
    losses: AllowedLosses,
) -> HistoryVerdict {
    let index = index::index(lines);
    let mut verdict = HistoryVerdict::default();
    verdict.figures.runs = 1;
    let empty = (index::ThreadHistory::default(), Vec::new());
    let mut threads: Vec<usize> = index.keys().chain(logs.keys()).copied().collect();
    threads.sort_unstable();
    threads.dedup();
    for thread in threads {
        let history = index.get(&thread).unwrap_or(&empty.0);
        let log = logs.get(&thread).unwrap_or(&empty.1);
        thread::check(thread, history, log, losses, &mut verdict);
    }
    verdict
}
