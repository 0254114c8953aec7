//! Appends and takes of each thread, from the lines of a history.

use std::collections::{BTreeMap, HashMap};

use crate::history::{AppendOutcome, Durability, HistoryEntry, HistoryLine, RecordNote};

/// A period in which a process writes a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ownership {
    pub node: String,
    pub number: u64,
}

/// An append, and what its caller learned.
pub struct Attempt {
    pub life: Ownership,
    pub at: u64,
    pub durable: Durability,
    pub records: Vec<RecordNote>,
    /// `None` if the process was killed before the answer.
    pub outcome: Option<AppendOutcome>,
    /// Whether the caller found the records stored, after an unknown outcome.
    pub settled: Option<bool>,
}

impl Attempt {
    /// Whether the writer was told that the records are stored.
    pub fn is_acknowledged(&self) -> bool {
        self.outcome == Some(AppendOutcome::Stored) || self.settled == Some(true)
    }

    /// Whether the records may be in the log.
    pub fn may_be_stored(&self) -> bool {
        match self.outcome {
            None | Some(AppendOutcome::Stored) => true,
            Some(AppendOutcome::Unknown) => self.settled != Some(false),
            Some(AppendOutcome::Failed | AppendOutcome::Conflict) => false,
        }
    }
}

/// The log as an owner found it.
pub struct TakenLog {
    pub at: u64,
    pub records: Vec<RecordNote>,
}

#[derive(Default)]
pub struct ThreadHistory {
    pub attempts: Vec<Attempt>,
    pub taken: HashMap<Ownership, TakenLog>,
}

pub fn index(lines: &[HistoryLine]) -> BTreeMap<usize, ThreadHistory> {
    let mut threads: BTreeMap<usize, ThreadHistory> = BTreeMap::new();
    let mut ops: HashMap<(&str, u64), (usize, usize)> = HashMap::new();
    for line in lines {
        let life = |number: u64| Ownership {
            node: line.node.clone(),
            number,
        };
        match &line.entry {
            HistoryEntry::Taken {
                thread,
                life: number,
                records,
            } => {
                let taken = TakenLog {
                    at: line.at,
                    records: records.clone(),
                };
                let history = threads.entry(*thread).or_default();
                history.taken.insert(life(*number), taken);
            }
            HistoryEntry::Append {
                thread,
                life: number,
                op,
                durable,
                records,
            } => {
                let attempts = &mut threads.entry(*thread).or_default().attempts;
                ops.insert((&line.node, *op), (*thread, attempts.len()));
                attempts.push(Attempt {
                    life: life(*number),
                    at: line.at,
                    durable: *durable,
                    records: records.clone(),
                    outcome: None,
                    settled: None,
                });
            }
            HistoryEntry::Appended { op, outcome } => {
                if let Some(attempt) = attempt(&mut threads, &ops, &line.node, *op) {
                    attempt.outcome = Some(*outcome);
                }
            }
            HistoryEntry::Settled { op, stored } => {
                if let Some(attempt) = attempt(&mut threads, &ops, &line.node, *op) {
                    attempt.settled = Some(*stored);
                }
            }
            HistoryEntry::Ended { .. } | HistoryEntry::Fault { .. } => {}
        }
    }
    threads
}

fn attempt<'a>(
    threads: &'a mut BTreeMap<usize, ThreadHistory>,
    ops: &HashMap<(&str, u64), (usize, usize)>,
    node: &str,
    op: u64,
) -> Option<&'a mut Attempt> {
    let (thread, at) = ops.get(&(node, op))?;
    threads.get_mut(thread)?.attempts.get_mut(*at)
}
