//! Histories: what each process intended, and what the journal answered, one JSON object on a line.
//!
//! An intention is written before the act, so it survives a kill of the process.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, Result};
use raddle_core::ports::AppendError;
use raddle_core::{Class, Event, Record, RecordBody};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// One line of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Microseconds of the monotonic clock, which all processes of the machine share.
    pub at: u64,
    /// Milliseconds since 1970.
    pub wall: u64,
    /// Name of the process.
    pub node: String,
    pub entry: HistoryEntry,
}

/// An intention, or an outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HistoryEntry {
    /// The process took a thread. A life is one period in which the process writes the thread.
    Taken {
        thread: usize,
        life: u64,
        /// All records up to the head that [`take`](raddle_core::ports::Journal::take) returned.
        records: Vec<RecordNote>,
    },
    /// An append is about to be sent.
    Append {
        thread: usize,
        life: u64,
        op: u64,
        durable: Durability,
        records: Vec<RecordNote>,
    },
    /// An append returned.
    Appended { op: u64, outcome: AppendOutcome },
    /// The head showed the outcome of an append that was unknown.
    Settled { op: u64, stored: bool },
    /// The life of a process as the writer of a thread ended.
    Ended {
        thread: usize,
        life: u64,
        reason: String,
    },
    /// The trial caused or repaired a fault.
    Fault { what: String },
}

/// A record, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordNote {
    pub seq: u64,
    /// Hash of the whole record.
    pub hash: u64,
    pub kind: NoteKind,
}

/// Part of a record's content that the checker needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NoteKind {
    /// The first record of an owner.
    Barrier {
        epoch: u64,
        /// Head that the owner found.
        found: u64,
    },
    TurnStarted {
        turn: String,
    },
    TurnEnded {
        turn: String,
    },
    Delta {
        item: String,
    },
    /// Text of an item, after which its earlier deltas may be deleted.
    Settles {
        item: String,
    },
    Event,
}

/// Failure that an append survives once it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Durability {
    /// The loss of the process.
    Process,
    /// The loss of power, or of the primary.
    Power,
}

/// Outcome of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AppendOutcome {
    Stored,
    /// Nothing was stored, and nothing will be.
    Failed,
    /// Nothing was stored, because another writer has the thread.
    Conflict,
    Unknown,
}

impl AppendOutcome {
    pub fn of(error: &AppendError) -> Self {
        match error {
            AppendError::Conflict => Self::Conflict,
            AppendError::Unknown(_) => Self::Unknown,
            _ => Self::Failed,
        }
    }
}

impl From<Class> for Durability {
    fn from(class: Class) -> Self {
        match class {
            Class::Process => Self::Process,
            Class::Power => Self::Power,
        }
    }
}

impl From<&Record> for RecordNote {
    fn from(record: &Record) -> Self {
        let json = serde_json::to_vec(record).unwrap_or_default();
        Self {
            seq: record.seq.0,
            hash: support::hash(&json),
            kind: NoteKind::from(&record.body),
        }
    }
}

impl From<&RecordBody> for NoteKind {
    fn from(body: &RecordBody) -> Self {
        let event = match body {
            RecordBody::Delta(delta) => {
                let item = delta.item.to_string();
                return Self::Delta { item };
            }
            RecordBody::Event(event) => event,
        };
        match &**event {
            Event::Owned(it) => Self::Barrier {
                epoch: it.epoch.0,
                found: it.found.0,
            },
            Event::TurnStarted(it) => Self::TurnStarted {
                turn: it.turn.to_string(),
            },
            Event::TurnEnded(it) => Self::TurnEnded {
                turn: it.turn.to_string(),
            },
            Event::ItemSaved(it) => Self::Settles {
                item: it.item.to_string(),
            },
            Event::ItemCompleted(it) => Self::Settles {
                item: it.item.id.to_string(),
            },
            _ => Self::Event,
        }
    }
}

pub fn notes<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<RecordNote> {
    records.into_iter().map(RecordNote::from).collect()
}

/// Writer of the history of one process.
pub struct Recorder {
    node: String,
    file: Mutex<File>,
}

impl Recorder {
    pub fn open(path: &Path, node: &str) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self {
            node: node.to_owned(),
            file: Mutex::new(file),
        })
    }

    /// Writes an entry by one system call.
    pub fn record(&self, entry: HistoryEntry) -> Result<()> {
        let now = clock_gettime(ClockId::Monotonic);
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let line = HistoryLine {
            at: u64::try_from(now.tv_sec)? * 1_000_000 + u64::try_from(now.tv_nsec)? / 1000,
            wall: u64::try_from(wall.as_millis())?,
            node: self.node.clone(),
            entry,
        };
        let mut json = serde_json::to_vec(&line)?;
        json.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(file.write_all(&json)?)
    }
}

/// Reads the histories in a folder, ordered by time. A line that its process did not finish is left
/// out.
pub fn read(folder: &Path) -> Result<Vec<HistoryLine>> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "history") {
            let read = BufReader::new(File::open(&path)?).lines();
            for line in read {
                lines.extend(serde_json::from_str::<HistoryLine>(&line?));
            }
        }
    }
    // Lines of one process have their order in the file.
    lines.sort_by_key(|line| line.at);
    Ok(lines)
}
