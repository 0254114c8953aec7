//! The states that applies gave the user's files.
//!
//! They say what the user's folder has of the copy: a file with another state was edited by the user.
//! The file has one line for each path of an apply, or of the undo of one, the newest last. Each line
//! belongs to a checkpoint, and does not count if that restore did not happen.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use raddle_core::ThreadId;
use raddle_core::ports::CheckpointError;
use raddle_workspace::{EntryKind, FileEntry, RestoreStep, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::checkpoints::json_lines;
use crate::checkpoints::log::{HexPath, LogEntry, LogState};

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

/// A change that an apply, or the undo of one, made to a file; `None` where it was absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AppliedLine {
    /// The thread whose client asked for it.
    thread: ThreadId,
    /// Its checkpoint.
    checkpoint: u64,
    path: HexPath,
    before: Option<FileState>,
    after: Option<FileState>,
    /// Whether it was an undo.
    is_undo: bool,
    /// Whether the new state has text of the user that the copy does not have.
    is_edited: bool,
}

impl AppliedLine {
    pub fn of_apply(
        thread: ThreadId,
        checkpoint: u64,
        step: &RestoreStep,
        is_edited: bool,
    ) -> Self {
        Self {
            thread,
            checkpoint,
            path: HexPath::new(&step.path),
            before: step.now.map(FileState::from),
            after: step.then.map(FileState::from),
            is_undo: false,
            is_edited,
        }
    }

    pub fn of_undo(thread: ThreadId, checkpoint: u64, step: &RestoreStep) -> Self {
        Self {
            is_undo: true,
            ..Self::of_apply(thread, checkpoint, step, false)
        }
    }

    /// Returns the change back, of an apply that failed.
    pub fn reversed(self) -> Self {
        Self {
            before: self.after,
            after: self.before,
            is_undo: true,
            ..self
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

/// Outcome of an apply or an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It did not happen.
    Dropped,
    /// Its process died. It counts only if the file has its new state.
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
            let outcomes = outcomes(&log).map(|(id, it)| ((thread, id), it));
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
        let lines = lines.iter().filter(|it| {
            let outcome = self.outcomes.get(&(it.thread, it.checkpoint));
            // The log of a deleted thread is gone; what it applied stays.
            match outcome.unwrap_or(&Outcome::Done) {
                Outcome::Done => true,
                Outcome::Dropped => false,
                Outcome::Interrupted => it.after == now,
            }
        });
        // The state of the user's file up to which it has the agent's changes. Text of the user is in
        // it after the undo of an apply that had overwritten it, for one.
        let (mut base, mut is_edited) = (&was, false);
        let mut without_edits = vec![&was];
        for line in lines {
            base = &line.after;
            is_edited = match line.is_undo {
                true => !without_edits.contains(&base),
                false => line.is_edited,
            };
            if !is_edited {
                without_edits.push(base);
            }
        }
        // The agent changed nothing since: what the file is now, the user wants.
        if is == now || is == *base {
            return Relation::Applied;
        }
        match is_edited || now != *base {
            true => Relation::Conflict,
            false => Relation::Pending,
        }
    }
}

/// Returns what became of each apply and undo in the log of a thread.
fn outcomes(log: &[LogEntry]) -> impl Iterator<Item = (u64, Outcome)> {
    log.iter().map(|it| {
        let outcome = match it.state {
            LogState::Complete if it.has_changes() => Outcome::Done,
            LogState::Complete => Outcome::Dropped,
            LogState::Open | LogState::Interrupted => Outcome::Interrupted,
        };
        (it.id, outcome)
    })
}

/// Adds the lines of an apply or an undo.
pub(super) fn append(
    path: &Path,
    lines: impl Iterator<Item = impl Borrow<AppliedLine>>,
) -> Result<(), CheckpointError> {
    let lines: Vec<_> = lines.collect();
    let lines = lines.iter().map(Borrow::borrow);
    let appended = json_lines::append(path, lines).and_then(|file| file.sync_all());
    appended.map_err(failed)
}

/// Copies the lines of one copy to another.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), CheckpointError> {
    let lines = json_lines::read::<AppliedLine>(from).map_err(failed)?;
    append(to, lines.iter())
}

/// Whether the applies of a thread are among those of a copy.
pub(super) fn has_lines_of(path: &Path, thread: ThreadId) -> Result<bool, CheckpointError> {
    let lines = json_lines::read::<AppliedLine>(path).map_err(failed)?;
    Ok(lines.iter().any(|it| it.thread == thread))
}

fn failed(error: io::Error) -> CheckpointError {
    CheckpointError::Failed(format!("the applied states of a copy: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case: the applies as `before>after` and the undos as `before<after`, the copied state,
    /// that in the copy, and that of the user; `-` is absent. One ends with `!` if it has text of the
    /// user, with `x` if it did not happen, and with `?` if its process died.
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
            ("a>b b<a", "a", "b", "a", Pending),
            ("a>b b<a", "a", "b", "u", Conflict),
            ("a>b b>c c<b", "a", "c", "b", Pending),
            ("a>b b>c c<a", "a", "c", "a", Pending),
            // The undo undone, for this file or only for others.
            ("a>b b<a a<b", "a", "b", "b", Applied),
            ("a>b b<a a<b", "a", "b", "u", Applied),
            ("a>b b<a a<bx", "a", "b", "u", Conflict),
            // The user edited the file before the undo, which left it as it is.
            ("a>b", "a", "b", "u", Applied),
            // Overwritten, and undone.
            ("u>b", "a", "b", "b", Applied),
            ("u>b b<u", "a", "b", "u", Conflict),
            ("u>b b<u u>b", "a", "c", "b", Pending),
            // It did not happen.
            ("a>bx", "a", "b", "a", Pending),
            ("a>bx", "a", "b", "u", Conflict),
            // A part was applied, also to a file that the user had edited, or with the user's text.
            ("a>p", "a", "b", "p", Pending),
            ("a>p", "a", "b", "u", Conflict),
            ("u>p!", "a", "b", "p", Conflict),
            ("u>p!", "a", "p", "p", Applied),
            // The process died before, and after.
            ("a>b?", "a", "b", "a", Pending),
            ("a>b?", "a", "b", "b", Applied),
            ("a>b?", "a", "b", "u", Conflict),
            ("a>b b<a?", "a", "b", "a", Pending),
            ("a>b b<a?", "a", "b", "b", Applied),
            ("a>b b>c c<a?", "a", "c", "a", Pending),
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
                    is_undo: &text[1..2] == "<",
                    is_edited: marks == "!",
                });
            }
            let relation = states.relation(&path, state(was), state(is), state(now));
            assert_eq!(relation, expected, "{applies} {was} {is} {now}");
        }
    }
}
