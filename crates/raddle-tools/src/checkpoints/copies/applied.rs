//! The states that applies gave the user's files.
//!
//! They say what the user's folder has of the copy: after an apply, a file with another state was
//! edited by the user. Each line belongs to a checkpoint. It does not count if that apply was undone,
//! or never happened. The file has one line for each path of an apply, the newest last.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use raddle_core::ThreadId;
use raddle_core::ports::CheckpointError;
use raddle_workspace::{EntryKind, FileEntry, RestoreStep, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::checkpoints::log::{HexPath, LogEntry, LogState};
use crate::checkpoints::{json_lines, restore};

/// Kind, mode and content of a file or link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileState {
    is_link: bool,
    mode: u32,
    hash: String,
}

impl From<FileEntry> for FileState {
    fn from(entry: FileEntry) -> Self {
        Self {
            is_link: entry.kind == EntryKind::Symlink,
            mode: entry.mode,
            hash: entry.hash.to_string(),
        }
    }
}

/// States of a file before and after an apply; `None` where it was absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AppliedLine {
    /// The thread that applied the change.
    thread: ThreadId,
    /// The checkpoint of the apply.
    checkpoint: u64,
    path: HexPath,
    before: Option<FileState>,
    after: Option<FileState>,
    /// Whether the new state has text of the user that the copy does not have.
    is_edited: bool,
}

impl AppliedLine {
    pub fn new(thread: ThreadId, checkpoint: u64, step: &RestoreStep, is_edited: bool) -> Self {
        Self {
            thread,
            checkpoint,
            path: HexPath::new(&step.path),
            before: step.now.map(FileState::from),
            after: step.then.map(FileState::from),
            is_edited,
        }
    }
}

/// Relation of a file of the user to that of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The user has the change, or edited the file since it was applied.
    Applied,
    /// The user's file has the state from which the agent changed it.
    Pending,
    /// The user edited the file, and the agent changed it.
    Conflict,
}

/// The applies of a copy.
#[derive(Debug, Default)]
pub(super) struct AppliedStates {
    of_paths: BTreeMap<WorkspacePath, Vec<AppliedLine>>,
    outcomes: BTreeMap<(ThreadId, u64), Outcome>,
}

/// Outcome of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It was undone, or never happened.
    Dropped,
    /// Its process died, or that of its undo. A file with its state from before says that it did not
    /// happen, or was undone.
    Interrupted,
}

impl AppliedStates {
    /// Reads the states. `log_of` returns the checkpoints of a thread; none if it was deleted. For a
    /// caller that has the folder to which the changes are applied, so that no apply is running.
    pub fn load(
        path: &Path,
        log_of: impl Fn(ThreadId) -> io::Result<Vec<LogEntry>>,
    ) -> Result<Self, CheckpointError> {
        let lines: Vec<AppliedLine> = json_lines::read(path).map_err(failed)?;
        let mut states = Self::default();
        for thread in lines.iter().map(|it| it.thread).collect::<BTreeSet<_>>() {
            let log = log_of(thread).map_err(failed)?;
            let outcomes = outcomes(log).into_iter();
            let outcomes = outcomes.map(|(id, it)| ((thread, id), it));
            states.outcomes.extend(outcomes);
        }
        for line in lines {
            if let Some(path) = line.path.parse() {
                states.of_paths.entry(path).or_default().push(line);
            }
        }
        Ok(states)
    }

    pub fn paths(&self) -> impl Iterator<Item = WorkspacePath> {
        self.of_paths.keys().cloned()
    }

    /// Compares a file: as it was copied, as it is in the copy, and as it is in the user's folder
    /// now.
    pub fn relation(
        &self,
        path: &WorkspacePath,
        was: Option<FileState>,
        is: Option<FileState>,
        now: Option<FileState>,
    ) -> Relation {
        let lines = self.of_paths.get(path).map_or(&[][..], |it| it);
        let mut lines = lines.iter().rev();
        let last = lines.find(|it| {
            let outcome = self.outcomes.get(&(it.thread, it.checkpoint));
            // The log of a deleted thread is gone; what it applied stays.
            match outcome.unwrap_or(&Outcome::Done) {
                Outcome::Done => true,
                Outcome::Dropped => false,
                Outcome::Interrupted => it.before != now,
            }
        });
        let base = last.map_or(&was, |it| &it.after);
        // The agent changed nothing since: what the file is now, the user wants.
        if is == now || is == *base {
            return Relation::Applied;
        }
        let is_edited = now != *base || last.is_some_and(|it| it.is_edited);
        match is_edited {
            true => Relation::Conflict,
            false => Relation::Pending,
        }
    }
}

/// Returns what became of each apply in the log of a thread.
fn outcomes(mut log: Vec<LogEntry>) -> BTreeMap<u64, Outcome> {
    log.retain(|it| it.is_applied);
    let maybe_undone = restore::reversed(&log);
    let all = log.iter().map(|it| (it.id, it.state, it.has_changes()));
    let all: Vec<_> = all.collect();
    log.retain(|it| it.state == LogState::Complete);
    let undone = restore::reversed(&log);
    let outcomes = all.into_iter().map(|(id, state, has_changes)| {
        let is_sure = state == LogState::Complete && !maybe_undone.contains(&id);
        let outcome = match is_sure {
            _ if undone.contains(&id) || !has_changes => Outcome::Dropped,
            true => Outcome::Done,
            false => Outcome::Interrupted,
        };
        (id, outcome)
    });
    outcomes.collect()
}

/// Adds the states of an apply.
pub(super) fn append(
    path: &Path,
    lines: impl Iterator<Item = AppliedLine>,
) -> Result<(), CheckpointError> {
    let appended = json_lines::append(path, lines).and_then(|file| file.sync_all());
    appended.map_err(failed)
}

fn failed(error: io::Error) -> CheckpointError {
    CheckpointError::Failed(format!("the applied states of a copy: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case: the checkpoints of a thread, and the outcome of each of its applies. A checkpoint
    /// is a turn `t`, an apply `a`, an apply without changes `n`, or a number: the undo of that
    /// checkpoint. Its process died if it ends with `?`.
    #[test]
    fn the_log_tells_what_became_of_an_apply() {
        use Outcome::{Done, Dropped, Interrupted};
        for (log, expected) in [
            ("a", vec![Done]),
            ("t a n", vec![Done, Dropped]),
            ("a a?", vec![Done, Interrupted]),
            ("a t 1", vec![Dropped]),
            ("a t 1?", vec![Interrupted]),
            // The undo was undone.
            ("a 1 2", vec![Done]),
            // An undo of the first reverses the second too.
            ("a a 1", vec![Dropped, Dropped]),
            ("a a 2", vec![Done, Dropped]),
            ("a a 2 1", vec![Dropped, Dropped]),
        ] {
            let entries = (1..).zip(log.split(' ')).map(|(id, word)| {
                let (kind, is_open) = word
                    .strip_suffix('?')
                    .map_or((word, false), |it| (it, true));
                LogEntry {
                    restored: kind.parse().ok(),
                    is_applied: kind != "t",
                    files: u64::from(kind != "n"),
                    state: match is_open {
                        true => LogState::Open,
                        false => LogState::Complete,
                    },
                    ..LogEntry::sample(id, "folder")
                }
            });
            let entries: Vec<LogEntry> = entries.collect();
            let applies = entries
                .iter()
                .filter(|it| it.is_applied && it.restored.is_none());
            let applies: Vec<u64> = applies.map(|it| it.id).collect();
            let outcomes = outcomes(entries);
            let outcomes: Vec<Outcome> = applies.iter().map(|it| outcomes[it]).collect();
            assert_eq!(outcomes, expected, "{log}");
        }
    }

    /// Each case: the applies as `before>after`, the copied state, that in the copy, and that of the
    /// user; `-` is absent. An apply ends with `!` if it has text of the user, with `x` if it was
    /// undone or did not happen, and with `?` if its process died.
    #[test]
    fn a_file_is_known_by_the_states_that_it_had() {
        use Relation::{Applied, Conflict, Pending};
        for (applies, was, is, now, expected) in [
            ("", "a", "b", "a", Pending),
            ("", "a", "b", "b", Applied),
            ("", "a", "b", "u", Conflict),
            ("", "-", "b", "-", Pending),
            ("", "a", "-", "u", Conflict),
            // Applied; the user goes on, also back; the agent goes on, also back.
            ("a>b", "a", "b", "b", Applied),
            ("a>b", "a", "b", "u", Applied),
            ("a>b", "a", "b", "a", Applied),
            ("a>b", "a", "c", "b", Pending),
            ("a>b", "a", "c", "u", Conflict),
            ("a>b", "a", "c", "a", Conflict),
            ("a>b", "a", "a", "b", Pending),
            // Undone, once and after a second apply.
            ("a>bx", "a", "b", "a", Pending),
            ("a>bx", "a", "b", "u", Conflict),
            ("a>b b>cx", "a", "c", "b", Pending),
            ("a>bx b>cx", "a", "c", "a", Pending),
            // Overwritten, and undone.
            ("u>b", "a", "b", "b", Applied),
            ("u>bx", "a", "b", "u", Conflict),
            // A part was applied, also to a file that the user had edited, or with the user's text.
            ("a>p", "a", "b", "p", Pending),
            ("a>p", "a", "b", "u", Conflict),
            ("u>p!", "a", "b", "p", Conflict),
            ("u>p!", "a", "p", "p", Applied),
            // The process died before, and after.
            ("a>b?", "a", "b", "a", Pending),
            ("a>b?", "a", "b", "b", Applied),
            ("a>b?", "a", "b", "u", Applied),
        ] {
            let state = |it: &str| {
                (it != "-").then(|| FileState {
                    is_link: false,
                    mode: 0o644,
                    hash: it.to_owned(),
                })
            };
            let path = WorkspacePath::new("f").expect("a path");
            let thread = ThreadId::mint();
            let mut states = AppliedStates::default();
            for (checkpoint, apply) in (1..).zip(applies.split(' ').filter(|it| !it.is_empty())) {
                let (text, marks) = apply.split_at(3);
                let outcome = match marks {
                    "x" => Outcome::Dropped,
                    "?" => Outcome::Interrupted,
                    _ => Outcome::Done,
                };
                states.outcomes.insert((thread, checkpoint), outcome);
                let lines = states.of_paths.entry(path.clone()).or_default();
                lines.push(AppliedLine {
                    thread,
                    checkpoint,
                    path: HexPath::new(&path),
                    before: state(&text[..1]),
                    after: state(&text[2..]),
                    is_edited: marks == "!",
                });
            }
            let relation = states.relation(&path, state(was), state(is), state(now));
            assert_eq!(relation, expected, "{applies} {was} {is} {now}");
        }
    }
}
