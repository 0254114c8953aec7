//! The states of the user's files before and after each apply.
//!
//! A file of the user that has one of these states again was not edited: the apply was undone, or the
//! process died before it. The file has one line for each state, the newest last.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use raddle_core::ports::CheckpointError;
use raddle_workspace::{EntryKind, FileEntry, RestoreStep, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::checkpoints::json_lines;
use crate::checkpoints::log::HexPath;

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
struct AppliedLine {
    path: HexPath,
    before: Option<FileState>,
    after: Option<FileState>,
}

/// Relation of a file of the user to that of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The user has the change, or edited the file since it was applied.
    Applied,
    /// The user's file has a state from which the change can be applied.
    Pending,
    /// The user edited the file, and the agent changed it.
    Conflict,
}

/// The applied states of all files of a copy.
#[derive(Debug, Default)]
pub(super) struct AppliedStates {
    of_paths: BTreeMap<WorkspacePath, Vec<AppliedLine>>,
}

impl AppliedStates {
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let mut states = Self::default();
        for line in json_lines::read::<AppliedLine>(path).map_err(failed)? {
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
        let last = lines.last().map_or(&was, |it| &it.after);
        let is_left = now == was || lines.iter().any(|it| it.after == now);
        let is_reached = is_left || lines.iter().any(|it| it.before == now);
        // The agent changed nothing since the last apply, which was not undone either.
        if is == now || is == *last && !is_reached {
            return Relation::Applied;
        }
        match is_left {
            true => Relation::Pending,
            false => Relation::Conflict,
        }
    }
}

/// Adds the states of an apply.
pub(super) fn append<'a>(
    path: &Path,
    steps: impl Iterator<Item = &'a RestoreStep>,
) -> Result<(), CheckpointError> {
    let lines = steps.map(|step| AppliedLine {
        path: HexPath::new(&step.path),
        before: step.now.map(FileState::from),
        after: step.then.map(FileState::from),
    });
    let appended = json_lines::append(path, lines).and_then(|file| file.sync_all());
    appended.map_err(failed)
}

fn failed(error: io::Error) -> CheckpointError {
    CheckpointError::Failed(format!("the applied states of a copy: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case: the applies as `before>after`, the copied state, that in the copy, and that of the
    /// user; `-` is absent.
    #[test]
    fn a_file_is_known_by_the_states_that_it_had() {
        use Relation::{Applied, Conflict, Pending};
        for (applies, was, is, now, expected) in [
            ("", "a", "b", "a", Pending),
            ("", "a", "b", "b", Applied),
            ("", "a", "b", "u", Conflict),
            ("", "-", "b", "-", Pending),
            ("", "a", "-", "u", Conflict),
            // Applied; the user goes on; the agent goes on.
            ("a>b", "a", "b", "b", Applied),
            ("a>b", "a", "b", "u", Applied),
            ("a>b", "a", "c", "b", Pending),
            ("a>b", "a", "c", "u", Conflict),
            ("a>b", "a", "a", "b", Pending),
            // Undone, once and after a second apply.
            ("a>b", "a", "b", "a", Pending),
            ("a>b b>c", "a", "c", "b", Pending),
            ("a>b b>c", "a", "c", "a", Pending),
            // Overwritten, and undone.
            ("u>b", "a", "b", "b", Applied),
            ("u>b", "a", "b", "u", Conflict),
            // A part was applied.
            ("a>p", "a", "b", "p", Pending),
        ] {
            let state = |it: &str| {
                (it != "-").then(|| FileState {
                    is_link: false,
                    mode: 0o644,
                    hash: it.to_owned(),
                })
            };
            let path = WorkspacePath::new("f").expect("a path");
            let lines = applies.split(' ').filter_map(|it| it.split_once('>'));
            let lines = lines.map(|(before, after)| AppliedLine {
                path: HexPath::new(&path),
                before: state(before),
                after: state(after),
            });
            let states = AppliedStates {
                of_paths: BTreeMap::from([(path.clone(), lines.collect())]),
            };
            let relation = states.relation(&path, state(was), state(is), state(now));
            assert_eq!(relation, expected, "{applies} {was} {is} {now}");
        }
    }
}
