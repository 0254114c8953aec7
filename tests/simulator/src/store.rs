//! A model of the journal: logs with a conditional append, and a disk that loses what was not
//! synced.

use std::rc::Rc;

use raddle_core::ports::AppendError;
use raddle_core::{Base, Bug, Class, Record, RecordBody, Seq, Tail, Thread};
use support::Rng;

use crate::fleet::{Commit, Database, Statement};
use crate::scenario::Medium;

/// A record as it is stored in the log.
#[derive(Debug)]
pub struct LogRow {
    /// Record as it was appended.
    pub record: Record,
    /// JSON form of the record.
    pub json: String,
}

/// Log of one thread.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Rows of the log, in order.
    pub rows: Vec<Rc<LogRow>>,
    /// Head of the conditional append.
    pub head: Seq,
    /// Snapshots, oldest first, in JSON form.
    bases: Vec<Rc<(Seq, String)>>,
}

/// An append, as an owner sends it to the store.
#[derive(Clone, Debug)]
pub struct Append {
    /// Index of the thread.
    pub thread: usize,
    /// Rows to copy in front of it from another thread's log, in the same step.
    pub copy: Option<Rc<Vec<Rc<LogRow>>>>,
    /// Head that it must follow.
    pub after: Seq,
    /// Records to append, in order.
    pub records: Vec<Record>,
    /// Failure that they must survive.
    pub class: Class,
}

#[derive(Clone, Debug)]
enum Transaction {
    Append {
        thread: usize,
        rows: Vec<Rc<LogRow>>,
    },
    Base {
        thread: usize,
        base: Rc<(Seq, String)>,
    },
    Delete {
        thread: usize,
    },
}

/// The logs of all threads.
#[derive(Debug)]
pub struct Store {
    medium: Medium,
    logs: Vec<Log>,
    /// The logs as the disk surely has them.
    synced: Vec<Log>,
    /// Transactions since the last sync.
    unsynced: Vec<Transaction>,
    /// Database in place of all this.
    pub database: Option<Database>,
}

impl Store {
    /// Creates a store with this many empty logs.
    pub fn new(medium: Medium, threads: usize) -> Self {
        Self {
            medium,
            logs: vec![Log::default(); threads],
            synced: vec![Log::default(); threads],
            unsynced: Vec::new(),
            database: (medium == Medium::Fleet).then(|| Database::new(threads)),
        }
    }

    /// Adds an empty log and returns its index.
    pub fn add(&mut self) -> usize {
        if let Some(database) = &mut self.database {
            database.add();
        }
        self.logs.push(Log::default());
        self.synced.push(Log::default());
        self.logs.len() - 1
    }

    /// Returns the log of a thread.
    pub fn log(&self, thread: usize) -> &Log {
        match &self.database {
            Some(database) => database.log(thread),
            None => &self.logs[thread],
        }
    }

    /// Appends if the head is where the writer expects it; returns the rows that were written.
    pub fn append(&mut self, append: &Append) -> Result<Vec<Rc<LogRow>>, AppendError> {
        let log = &self.logs[append.thread];
        let mut rows = Vec::new();
        if let Some(copy) = &append.copy {
            if log.head != Seq::ZERO {
                return Err(AppendError::Conflict);
            }
            rows.extend(copy.iter().cloned());
        } else if !log.admits(append.after) {
            return Err(AppendError::Conflict);
        }
        let written: Vec<Rc<LogRow>> = append.records.iter().map(LogRow::of).collect();
        rows.extend(written.iter().cloned());
        let synced = append.class == Class::Power || self.medium == Medium::Replicated;
        self.commit(
            Transaction::Append {
                thread: append.thread,
                rows,
            },
            synced,
        );
        Ok(written)
    }

    /// Stores a snapshot, which need not be durable.
    pub fn save_base(&mut self, now: u64, thread: usize, base: Box<Base>) {
        if let Some(database) = &mut self.database {
            let statement = Statement::SaveBase(thread, Rc::from(base));
            database.run(now, &statement, Commit::Nothing);
            return;
        }
        let head = base.thread.head();
        let json = serde_json::to_string(&base).unwrap_or_default();
        // A late snapshot of a former owner says nothing about what is stored now.
        if head <= self.logs[thread].head {
            let base = Rc::new((head, json));
            self.commit(Transaction::Base { thread, base }, false);
        }
    }

    /// Removes the log of a thread.
    pub fn delete(&mut self, now: u64, thread: usize) {
        if let Some(database) = &mut self.database {
            database.run(now, &Statement::Delete(thread), Commit::Standby);
            return;
        }
        self.commit(Transaction::Delete { thread }, true);
    }

    fn commit(&mut self, transaction: Transaction, sync: bool) {
        transaction.apply(&mut self.logs);
        let thread = transaction.thread();
        self.unsynced.push(transaction);
        if sync {
            let alone = self.medium == Medium::Apart;
            let due = |it: &mut Transaction| !alone || it.thread() == thread;
            for transaction in self.unsynced.extract_if(.., due) {
                transaction.apply(&mut self.synced);
            }
        }
    }

    /// Loses power. A prefix of what was not synced survives nevertheless.
    pub fn lose_power(&mut self, kept_percent: u64) {
        let surviving = share(self.unsynced.len(), kept_percent);
        for transaction in self.unsynced.drain(..).take(surviving) {
            transaction.apply(&mut self.synced);
        }
        self.logs.clone_from(&self.synced);
    }

    /// Loses power, with a prefix of what was not synced surviving for each thread: of one thread
    /// more than of another. Bases may be lost, also those of surviving records.
    pub fn tear(&mut self, rng: &mut Rng) {
        for thread in 0..self.logs.len() {
            let mine = |it: &mut Transaction| it.thread() == thread;
            let mine: Vec<Transaction> = self.unsynced.extract_if(.., mine).collect();
            let surviving = share(mine.len(), rng.below(101));
            for transaction in mine.iter().take(surviving) {
                transaction.apply(&mut self.synced);
            }
            self.synced[thread].bases.retain(|_| rng.percent(60));
        }
        self.logs.clone_from(&self.synced);
    }
}

/// Returns this percentage of a number.
fn share(all: usize, percent: u64) -> usize {
    usize::try_from(all as u64 * percent / 100).unwrap_or(0)
}

impl Transaction {
    fn thread(&self) -> usize {
        match self {
            Self::Append { thread, .. } | Self::Base { thread, .. } | Self::Delete { thread } => {
                *thread
            }
        }
    }

    fn apply(&self, logs: &mut [Log]) {
        match self {
            Self::Append { thread, rows } => logs[*thread].extend(rows),
            Self::Base { thread, base } => {
                let bases = &mut logs[*thread].bases;
                bases.push(base.clone());
                bases.sort_by_key(|base| base.0);
            }
            Self::Delete { thread } => {
                // The head stays, so that no former owner can write the thread again.
                logs[*thread].clear();
            }
        }
    }
}

impl Log {
    fn admits(&self, after: Seq) -> bool {
        if Bug::TwoWriters.is_planted() {
            return true;
        }
        after == self.head || (Bug::ZombieAfterDeltas.is_planted() && after >= self.newest_event())
    }

    /// The head, as a store would know it whose conditional append compares only events.
    fn newest_event(&self) -> Seq {
        let mut events = self.rows.iter().rev();
        let event = events.find(|row| matches!(row.record.body, RecordBody::Event(_)));
        event.map_or(Seq::ZERO, |row| row.record.seq)
    }

    /// The head of the conditional append, as a reader sees it.
    pub fn fence(&self) -> Seq {
        if Bug::ZombieAfterDeltas.is_planted() {
            self.newest_event()
        } else {
            self.head
        }
    }

    /// Adds a snapshot.
    pub fn save_base(&mut self, base: &Base) {
        let json = serde_json::to_string(base).unwrap_or_default();
        self.bases.push(Rc::new((base.thread.head(), json)));
        self.bases.sort_by_key(|base| base.0);
    }

    /// Removes everything but the head.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.bases.clear();
    }

    /// Appends rows. Deltas of items that they settle are removed.
    pub fn extend(&mut self, rows: &[Rc<LogRow>]) {
        for row in rows {
            if let RecordBody::Event(event) = &row.record.body
                && let Some(item) = event.settles()
            {
                self.rows.retain(
                    |old| !matches!(&old.record.body, RecordBody::Delta(it) if it.item == *item),
                );
            }
            self.rows.push(row.clone());
            self.head = row.record.seq;
        }
    }

    /// Whether the log has no rows: the thread was not started, or was removed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of snapshots to open it from.
    pub fn bases(&self) -> usize {
        self.bases.len()
    }

    /// Opens the thread as a node does: from the newest base not above a number, and the records up
    /// to it. Returns the size of that tail too. Everything is parsed from its JSON form.
    pub fn open(&self, upto: Seq) -> (Thread, Tail) {
        let base = self.bases.iter().rev().find(|base| base.0 <= upto);
        let base = base.and_then(|base| serde_json::from_str::<Base>(&base.1).ok());
        let mut thread = base.map(|base| base.thread).unwrap_or_default();
        let head = thread.head();
        let rest = self
            .rows
            .iter()
            .filter(|row| row.record.seq > head && row.record.seq <= upto);
        let mut tail = Tail::default();
        for row in rest {
            if let Ok(record) = serde_json::from_str(&row.json) {
                thread.apply(&record);
                tail.count(&record);
            }
        }
        (thread, tail)
    }

    /// Folds the thread from all its records up to a number.
    pub fn fold(&self, upto: Seq) -> Thread {
        let mut thread = Thread::new();
        for row in self.rows.iter().take_while(|row| row.record.seq <= upto) {
            thread.apply(&row.record);
        }
        thread
    }
}

impl LogRow {
    /// Creates the row of a record.
    pub fn of(record: &Record) -> Rc<Self> {
        Rc::new(Self {
            record: record.clone(),
            json: serde_json::to_string(record).unwrap_or_default(),
        })
    }
}
