//! Statements, their conditions, and the rows that they name.

use std::rc::Rc;

use raddle_core::{Base, Bug, Seq};

use crate::check::WriterId;
use crate::store::LogRow;

/// A node log: its process, and the number of the log in that process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogId {
    /// Node and its incarnation.
    pub process: (usize, u64),
    /// Number of the log in that process.
    pub count: u64,
}

/// A delta, as a batch has it.
#[derive(Clone, Debug)]
pub struct DeltaRow {
    /// Index of the thread.
    pub thread: usize,
    /// Writer that appended it, for the checks.
    pub by: WriterId,
    /// Number of the append, for the checks.
    pub attempt: u64,
    /// Its record.
    pub row: Rc<LogRow>,
}

/// A statement of a batch of the node log.
#[derive(Debug)]
pub struct NodeLogBatch {
    /// Log that it belongs to.
    pub log: LogId,
    /// Number of the batch.
    pub n: u64,
    /// Counter that it expects.
    pub after: u64,
    /// Its deltas.
    pub rows: Rc<Vec<DeltaRow>>,
}

/// The statement of an append: a conditional change of the thread's row, and everything else only
/// if that row changed.
#[derive(Debug)]
pub struct AppendStatement {
    /// Index of the thread.
    pub thread: usize,
    /// Writer that appends, for the checks.
    pub by: WriterId,
    /// Number of the append, for the checks.
    pub attempt: u64,
    /// Row that it expects.
    pub expected: ThreadRow,
    /// Rows of another thread, in front of a fork.
    pub copy: Option<Rc<Vec<Rc<LogRow>>>>,
    /// Deltas that only the node log has. Those that the records settle need no row.
    pub gathered: Vec<DeltaRow>,
    /// Rows of the records.
    pub records: Vec<Rc<LogRow>>,
    /// Row after it.
    pub row: ThreadRow,
}

/// The row of a thread, without its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRow {
    /// Whether the thread exists. A row of another is reserved to settle a doubt.
    pub is_live: bool,
    /// Newest record that no node log has.
    pub head: Seq,
    /// Link of the newest event.
    pub link: u64,
    /// Number that rises when a node takes the thread or settles a doubt.
    pub fence: u64,
    /// Node log that may have deltas after the head.
    pub writer: Option<LogId>,
    /// Node that appends to that log.
    pub owner: Option<String>,
    /// Batches of that log up to this one have no deltas after the head.
    pub since: u64,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// An append to a thread.
    Append(Rc<AppendStatement>),
    /// Creates the row of a node log.
    Begin(LogId),
    /// Settles a doubt about a thread.
    Settle(usize),
    /// Takes a thread of which no node log has deltas.
    TakeUngathered(usize),
    /// Copies gathered deltas to rows of the thread, and ends its use of the log.
    Copy(usize, ThreadRow, Rc<Vec<DeltaRow>>),
    /// Seals a node log.
    Seal(LogId),
    /// Reads whether a node log accepts no batches.
    IsSealed(LogId),
    /// Reads the row of a thread, and the deltas that only a node log has.
    Load(usize),
    /// Reads the newest record of a thread.
    Head(usize),
    /// A batch of a node log.
    Batch(Rc<NodeLogBatch>),
    /// Reads the counter of a node log.
    Counter(LogId),
    /// Stores a snapshot.
    SaveBase(usize, Rc<Base>),
    /// Removes a thread.
    Delete(usize),
}

/// Condition that a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The standby.
    Standby,
    /// Nothing.
    Nothing,
}

/// Response to a statement.
#[derive(Clone, Debug)]
pub enum Response {
    /// Whether it had an effect.
    Moved(bool),
    /// Row of a thread, if there is one, and the deltas after its head.
    Row(Option<ThreadRow>, Vec<DeltaRow>),
    /// Newest record of the thread, if it was there.
    Head(Option<Seq>),
    /// Counter of a node log and whether it is sealed, if there is one.
    Counter(Option<(u64, bool)>),
}

impl Statement {
    /// Returns the threads that it may change.
    pub(super) fn threads(&self) -> Vec<usize> {
        match self {
            Self::Append(it) => vec![it.thread],
            Self::Batch(it) => it.rows.iter().map(|row| row.thread).collect(),
            Self::Settle(thread)
            | Self::TakeUngathered(thread)
            | Self::Copy(thread, ..)
            | Self::SaveBase(thread, _)
            | Self::Delete(thread)
            | Self::Load(thread)
            | Self::Head(thread) => vec![*thread],
            Self::Begin(_) | Self::Seal(_) | Self::IsSealed(_) | Self::Counter(_) => Vec::new(),
        }
    }
}

impl AppendStatement {
    pub(super) fn admits(&self, row: Option<&ThreadRow>) -> bool {
        let expected = &self.expected;
        let Some(row) = row else {
            return !expected.is_live && expected.fence == 0;
        };
        if Bug::TwoWriters.is_planted() && row.is_live {
            return true;
        }
        let fence = row.fence == expected.fence || Bug::LateStatement.is_planted();
        row.is_live == expected.is_live
            && fence
            && (!row.is_live || row.head == expected.head && row.link == expected.link)
    }
}
