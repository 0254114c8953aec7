//! Checkpoints that a conversation gives, in memory. Restoring them changes the files of the
//! workspace.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use raddle_core::ports::{
    BoxFuture, ChangeAuthor, Checkpoint, CheckpointDiff, CheckpointError, CheckpointRange,
    CheckpointState, Checkpoints, ConflictReason, DiffHunk, FileConflict, FileDiff,
    FileDiffContent, FileDiffKind, FileRestore, RestoreEffect, RestoreFiles, RestoredFile,
};
use raddle_core::{ThreadId, Timestamp};
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use crate::player::{GivenCheckpoint, GivenCheckpoints, Harness};

/// Checkpoints of the one thread of a test.
#[derive(Clone, Debug)]
pub struct ScriptedCheckpoints {
    workspace: PathBuf,
    given: GivenCheckpoints,
    failure: Option<CheckpointError>,
    /// Whether no restore can be undone.
    pub undo_fails: Arc<AtomicBool>,
    /// Gets a permit when the checkpoints of a thread are removed.
    pub forgotten: Arc<Notify>,
}

impl ScriptedCheckpoints {
    pub fn of(harness: &Harness) -> Self {
        Self {
            workspace: harness.workspace.clone(),
            given: harness.checkpoints.clone(),
            failure: None,
            undo_fails: Arc::default(),
            forgotten: Arc::default(),
        }
    }

    /// Returns the same checkpoints; every restore of them fails.
    pub fn failing(self, failure: CheckpointError) -> Self {
        Self {
            failure: Some(failure),
            ..self
        }
    }

    fn given(&self) -> Vec<GivenCheckpoint> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.clone()
    }

    pub fn planned(&self, request: &RestoreFiles) -> Result<Plan, CheckpointError> {
        let given = self.given();
        let first = given.iter().position(|it| it.id == request.checkpoint);
        let since = &given[first.ok_or(CheckpointError::NoSuchCheckpoint)?..];
        let mut plan = Plan::default();
        let changes = together(since);
        if let Some(path) = request
            .overwrite
            .iter()
            .find(|it| !changes.contains_key(*it))
        {
            return Err(CheckpointError::NotChanged(path.clone()));
        }
        for (path, (before, known)) in changes {
            let now = read(&self.workspace.join(&path));
            if now == before {
                continue;
            }
            if now != known && !request.overwrite.contains(&path) {
                plan.restore.conflicts.push(FileConflict {
                    path,
                    before: before.as_deref().map(hash),
                    known: known.as_deref().map(hash),
                    now: now.as_deref().map(hash),
                    reason: ConflictReason::Changed,
                });
                continue;
            }
            let effect = match (&now, &before) {
                (None, _) => RestoreEffect::Created,
                (_, None) => RestoreEffect::Deleted,
                _ => RestoreEffect::Changed,
            };
            let path_of_file = path.clone();
            plan.restore.restored.push(RestoredFile { path, effect });
            plan.changes.insert(path_of_file, (now, before));
        }
        Ok(plan)
    }

    fn restored(&self, request: &RestoreFiles) -> Result<FileRestore, CheckpointError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.undo_fails.load(Relaxed) && request.checkpoint.starts_with("restore-") {
            return Err(CheckpointError::Failed("the disk is full".to_owned()));
        }
        let mut plan = self.planned(request)?;
        if plan.changes.is_empty() {
            return Ok(plan.restore);
        }
        plan.write(&self.workspace)?;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("restore-{}", given.len());
        plan.restore.checkpoint = Some(id.clone());
        given.push(GivenCheckpoint {
            id,
            turn: None,
            changes: plan.changes,
        });
        Ok(plan.restore)
    }

    fn diff_of(&self, range: CheckpointRange) -> Result<CheckpointDiff, CheckpointError> {
        let given = self.given();
        let position = |id: &str| {
            let found = given.iter().position(|it| it.id == id);
            found.ok_or(CheckpointError::NoSuchCheckpoint)
        };
        let selected = match range {
            CheckpointRange::Turn(turn) => {
                let found = given
                    .iter()
                    .position(|it| it.turn.as_deref() == Some(turn.as_str()));
                let found = found.ok_or(CheckpointError::NoCheckpointOfTurn)?;
                &given[found..=found]
            }
            CheckpointRange::Between { from, to } => {
                let from = from.as_deref().map_or(Ok(0), position)?;
                let to = to.as_deref().map(position).transpose()?;
                &given[from..to.map_or(given.len(), |it| it + 1)]
            }
        };
        let files: Vec<FileDiff> = together(selected)
            .into_iter()
            .map(|(path, (before, after))| file_diff(path, before, after))
            .collect();
        Ok(CheckpointDiff {
            unified: files.iter().map(unified).collect(),
            files,
            gaps: Vec::new(),
        })
    }
}

#[derive(Debug, Default)]
pub struct Plan {
    pub restore: FileRestore,
    /// The files with their content now and later.
    changes: Changes,
}

impl Plan {
    /// Gives the files of a folder their later content.
    pub fn write(&self, folder: &Path) -> Result<(), CheckpointError> {
        for (path, (_, content)) in &self.changes {
            let path = folder.join(path);
            let written = match content {
                Some(content) => fs::write(path, content),
                None => fs::remove_file(path),
            };
            written.map_err(|error: io::Error| CheckpointError::Failed(error.to_string()))?;
        }
        Ok(())
    }
}

/// Files with their content before and after.
type Changes = BTreeMap<String, (Option<String>, Option<String>)>;

/// Returns the changes of some checkpoints together.
fn together(given: &[GivenCheckpoint]) -> Changes {
    let mut changes = Changes::new();
    for (path, (before, after)) in given.iter().flat_map(|it| it.changes.clone()) {
        let first_before = changes.remove(&path).map_or(before, |it| it.0);
        changes.insert(path, (first_before, after));
    }
    changes.retain(|_, (before, after)| before != after);
    changes
}

pub fn read(path: &PathBuf) -> Option<String> {
    fs::read_to_string(path).ok()
}

pub fn hash(content: &str) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the change of a file as one hunk.
pub fn file_diff(path: String, before: Option<String>, after: Option<String>) -> FileDiff {
    let mode = |content: &Option<String>| content.as_ref().map(|_| "100644".to_owned());
    FileDiff {
        id: hash(&format!("{path} {before:?} {after:?}")),
        previous_path: None,
        kind: match (&before, &after) {
            (None, _) => FileDiffKind::Added,
            (_, None) => FileDiffKind::Deleted,
            _ => FileDiffKind::Modified,
        },
        mode_before: mode(&before),
        mode_after: mode(&after),
        base: before.as_deref().map(hash),
        result: after.as_deref().map(hash),
        content: FileDiffContent::Text(vec![DiffHunk {
            id: format!("{path}#1"),
            old_start: 1,
            old_text: before.unwrap_or_default(),
            new_start: 1,
            new_text: after.unwrap_or_default(),
        }]),
        author: ChangeAuthor::Agent,
        path,
    }
}

pub fn unified(file: &FileDiff) -> String {
    let FileDiffContent::Text(hunks) = &file.content else {
        return String::new();
    };
    let marked = |mark: char, text: &str| -> String {
        let lines = text.split_inclusive('\n');
        lines.map(|line| format!("{mark}{line}")).collect()
    };
    let hunks: String = hunks
        .iter()
        .map(|it| format!("{}{}", marked('-', &it.old_text), marked('+', &it.new_text)))
        .collect();
    format!("--- a/{0}\n+++ b/{0}\n{hunks}", file.path)
}

impl Checkpoints for ScriptedCheckpoints {
    fn list(&self, _: ThreadId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>> {
        let checkpoint = |it: GivenCheckpoint| Checkpoint {
            restored: None,
            id: it.id,
            turn: it.turn.as_deref().map(Into::into),
            taken_at: Timestamp(1_700_000_000_000),
            folder: self.workspace.display().to_string(),
            files: it.changes.len() as u64,
            state: CheckpointState::Complete,
            gaps: Vec::new(),
        };
        let list = self.given().into_iter().map(checkpoint).collect();
        Box::pin(std::future::ready(Ok(list)))
    }

    fn preview(
        &self,
        _: ThreadId,
        request: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>> {
        let plan = self.planned(&request);
        Box::pin(std::future::ready(plan.map(|it| it.restore)))
    }

    fn restore(
        &self,
        _: ThreadId,
        request: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>> {
        Box::pin(std::future::ready(self.restored(&request)))
    }

    fn diff(
        &self,
        _: ThreadId,
        range: CheckpointRange,
    ) -> BoxFuture<'_, Result<CheckpointDiff, CheckpointError>> {
        Box::pin(std::future::ready(self.diff_of(range)))
    }

    fn forget(&self, _: ThreadId) -> BoxFuture<'_, Result<(), CheckpointError>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.clear();
        self.forgotten.notify_one();
        Box::pin(std::future::ready(Ok(())))
    }
}
