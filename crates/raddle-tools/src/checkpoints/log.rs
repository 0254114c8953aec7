//! The log of a thread's checkpoints: one line for each state of a checkpoint, the newest last.
//!
//! It is not synchronised.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use raddle_core::{ThreadId, Timestamp, TurnId};
use raddle_workspace::WorkspacePath;
use serde::{Deserialize, Serialize};

use super::json_lines;

/// State of a checkpoint in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum LogState {
    /// A tool runs. If no process has the turn open, its server died.
    Open,
    /// A server died in a tool of this turn, and the changes until then are added.
    Interrupted,
    Complete,
}

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogEntry {
    pub id: u64,
    /// Absent for a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The checkpoint before which a restore returned the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<u64>,
    /// The workspace; in hexadecimal digits, because it need not be UTF-8.
    #[serde(with = "hex_path")]
    pub folder: PathBuf,
    pub at: Timestamp,
    /// Ids of the two snapshots.
    pub before: String,
    pub after: String,
    pub files: u64,
    pub state: LogState,
    /// Whether the changes came from the copy in which the thread works, or undid such ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_applied: bool,
    /// Snapshot before the tool that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_agent: Vec<HexPath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<HexPath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<LogGap>,
}

impl LogEntry {
    pub fn has_changes(&self) -> bool {
        self.files > 0 || self.state == LogState::Open
    }

    /// Returns a complete checkpoint without a turn.
    #[cfg(test)]
    pub fn sample(id: u64, folder: &str) -> Self {
        Self {
            id,
            turn: None,
            restored: None,
            folder: PathBuf::from(folder),
            at: Timestamp(0),
            before: String::new(),
            after: String::new(),
            files: 1,
            state: LogState::Complete,
            is_applied: false,
            base: None,
            by_agent: Vec::new(),
            unknown: Vec::new(),
            gaps: Vec::new(),
        }
    }
}

/// A path that is not covered; `None` is the workspace itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogGap {
    pub path: Option<String>,
    pub reason: String,
}

/// A path of the workspace, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct HexPath(String);

impl HexPath {
    pub fn new(path: &WorkspacePath) -> Self {
        Self(HEXLOWER.encode(path.as_bytes()))
    }

    pub fn of_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the digits as a line of a file.
    pub fn line(&self) -> String {
        format!("{}\n", self.0)
    }

    pub fn parse(&self) -> Option<WorkspacePath> {
        let bytes = HEXLOWER.decode(self.0.as_bytes()).ok()?;
        WorkspacePath::new(PathBuf::from(OsString::from_vec(bytes)))
    }
}

mod hex_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use data_encoding::HEXLOWER;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(path.as_os_str().as_bytes()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(D::Error::custom)?;
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }
}

/// The logs of all threads.
#[derive(Clone, Debug)]
pub(super) struct Logs {
    folder: PathBuf,
}

impl Logs {
    /// Returns the logs in the folder of the checkpoints.
    pub fn of(checkpoints: &Path) -> Self {
        Self {
            folder: checkpoints.join("threads"),
        }
    }

    fn path(&self, thread: ThreadId) -> PathBuf {
        self.folder.join(format!("{thread}.jsonl"))
    }

    /// Returns the newest state of each checkpoint, oldest checkpoint first.
    pub fn read(&self, thread: ThreadId) -> io::Result<Vec<LogEntry>> {
        let mut entries: Vec<LogEntry> = Vec::new();
        for entry in json_lines::read::<LogEntry>(&self.path(thread))? {
            match entries.iter_mut().rfind(|it| it.id == entry.id) {
                Some(known) => *known = entry,
                None => entries.push(entry),
            }
        }
        Ok(entries)
    }

    pub fn append(&self, thread: ThreadId, entry: &LogEntry) -> io::Result<()> {
        json_lines::make_private(&self.folder)?;
        json_lines::append(&self.path(thread), std::iter::once(entry)).map(drop)
    }

    pub fn remove(&self, thread: ThreadId) -> io::Result<()> {
        match fs::remove_file(self.path(thread)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
