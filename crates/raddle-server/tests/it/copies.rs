//! Copies of the workspace of a conversation. They have the files at its top alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use raddle_core::ThreadId;
use raddle_core::ports::{
    ApplyChanges, BoxFuture, CheckpointDiff, ConflictReason, CopyChanges, CopyError, CopyOverlap,
    CreatedCopy, FileConflict, FileRestore, NewCopy, RestoreEffect, RestoreFiles, RestoredFile,
    ThreadFolder, WorkspaceCopies, WorkspaceCopy,
};

use crate::checkpoints::{ScriptedCheckpoints, file_diff, hash, read, unified};
use crate::player::Harness;

/// The copies of all threads of a test.
#[derive(Clone, Debug)]
pub struct ScriptedCopies {
    workspace: PathBuf,
    folder: PathBuf,
    copied: Arc<Mutex<BTreeMap<ThreadId, BTreeMap<String, String>>>>,
    checkpoints: ScriptedCheckpoints,
}

impl ScriptedCopies {
    pub fn of(harness: &Harness) -> Self {
        Self {
            workspace: harness.workspace.clone(),
            folder: harness.home.join("copies"),
            copied: Arc::default(),
            checkpoints: ScriptedCheckpoints::of(harness),
        }
    }

    fn copy(&self, thread: ThreadId) -> WorkspaceCopy {
        WorkspaceCopy {
            origin: self.workspace.display().to_string(),
            folder: self.folder.join(thread.to_string()).display().to_string(),
        }
    }

    fn copied(&self, thread: ThreadId) -> Option<BTreeMap<String, String>> {
        let copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        copied.get(&thread).cloned()
    }

    fn created(&self, thread: ThreadId, request: NewCopy) -> Result<CreatedCopy, CopyError> {
        if self.workspace.display().to_string() != request.cwd {
            let error = format!("{}: cannot be copied: it is not the workspace", request.cwd);
            return Err(CopyError::CannotCopy(error));
        }
        let copy = self.copy(thread);
        let folder = PathBuf::from(&copy.folder);
        fs::create_dir_all(&folder).expect("a folder");
        let files = files(&self.workspace);
        for (name, text) in &files {
            fs::write(folder.join(name), text).expect("a file");
        }
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        copied.insert(thread, files);
        let mut conflicts = Vec::new();
        if let Some(checkpoint) = request.fork.and_then(|it| it.checkpoint) {
            let plan = self.checkpoints.planned(&RestoreFiles {
                checkpoint,
                overwrite: Vec::new(),
            })?;
            plan.write(&folder)?;
            conflicts = plan.restore.conflicts;
        }
        let folders = request.folders.into_iter().filter_map(|it| {
            let in_copy = copy.path_in_copy(&it)?;
            Some((it, in_copy))
        });
        Ok(CreatedCopy {
            cwd: copy.folder.clone(),
            folders: folders.collect(),
            is_new: true,
            conflicts,
        })
    }

    /// Returns the changed files: each with its copied content and the one in the copy.
    fn pending(&self, thread: ThreadId) -> BTreeMap<String, (Option<String>, Option<String>)> {
        let copied = self.copied(thread).unwrap_or_default();
        let now = files(&PathBuf::from(self.copy(thread).folder));
        let names: BTreeSet<&String> = copied.keys().chain(now.keys()).collect();
        let changes = names.into_iter().map(|it| {
            let sides = (copied.get(it).cloned(), now.get(it).cloned());
            (it.clone(), sides)
        });
        let is_pending = |(name, (before, after)): &(String, (Option<String>, Option<String>))| {
            before != after && read(&self.workspace.join(name)) != *after
        };
        changes.filter(is_pending).collect()
    }

    fn conflicts(&self, thread: ThreadId) -> Vec<FileConflict> {
        let pending = self.pending(thread).into_iter();
        let conflicts = pending.filter_map(|(path, (before, after))| {
            let now = read(&self.workspace.join(&path));
            (now != before).then(|| FileConflict {
                path,
                before: before.as_deref().map(hash),
                known: after.as_deref().map(hash),
                now: now.as_deref().map(hash),
                reason: ConflictReason::Changed,
            })
        });
        conflicts.collect()
    }

    fn overlaps(&self, thread: ThreadId) -> Vec<CopyOverlap> {
        let pending = self.pending(thread);
        let copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        let others: Vec<ThreadId> = copied.keys().filter(|it| **it != thread).copied().collect();
        drop(copied);
        let overlaps = others.into_iter().map(|other| CopyOverlap {
            thread: other,
            paths: {
                let others = self.pending(other).into_keys();
                others.filter(|it| pending.contains_key(it)).collect()
            },
        });
        overlaps.filter(|it| !it.paths.is_empty()).collect()
    }

    fn applied(&self, thread: ThreadId, request: &ApplyChanges) -> Result<FileRestore, CopyError> {
        if self.copied(thread).is_none() {
            return Err(CopyError::NoCopy);
        }
        let pending = self.pending(thread);
        let chosen = request.files.iter().flatten().map(|it| &it.path);
        if let Some(path) = chosen
            .chain(&request.overwrite)
            .find(|it| !pending.contains_key(*it))
        {
            let error =
                format!("`{path}` has no change to apply: name a path of thread/workspace/read");
            return Err(CopyError::NotChanged(error));
        }
        let is_chosen = |path: &String| {
            let chosen = request.files.as_ref();
            chosen.is_none_or(|files| files.iter().any(|it| it.path == *path))
        };
        let mut done = FileRestore::default();
        let conflicts = self.conflicts(thread);
        for (path, (_, after)) in pending.into_iter().filter(|(path, _)| is_chosen(path)) {
            let conflict = conflicts.iter().find(|it| it.path == path);
            if let Some(conflict) = conflict.filter(|_| !request.overwrite.contains(&path)) {
                done.conflicts.push(conflict.clone());
                continue;
            }
            let file = self.workspace.join(&path);
            let effect = match (file.exists(), &after) {
                (_, None) => RestoreEffect::Deleted,
                (true, _) => RestoreEffect::Changed,
                (false, _) => RestoreEffect::Created,
            };
            match after {
                Some(text) => fs::write(file, text).expect("a file"),
                None => fs::remove_file(file).expect("a file"),
            }
            done.restored.push(RestoredFile { path, effect });
        }
        done.checkpoint = (!done.restored.is_empty()).then(|| "c1".to_owned());
        Ok(done)
    }
}

/// Returns the files at the top of a folder.
fn files(folder: &PathBuf) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let files = entries.filter_map(|it| {
        let name = it.file_name().into_string().ok()?;
        Some((name, read(&it.path())?))
    });
    files.collect()
}

impl WorkspaceCopies for ScriptedCopies {
    fn create(
        &self,
        thread: ThreadId,
        request: NewCopy,
    ) -> BoxFuture<'_, Result<CreatedCopy, CopyError>> {
        Box::pin(ready(self.created(thread, request)))
    }

    fn fork(&self, _: ThreadFolder, _: ThreadId) -> BoxFuture<'_, Result<(), CopyError>> {
        Box::pin(ready(Ok(())))
    }

    fn abandon(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), CopyError>> {
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        copied.remove(&thread);
        let _ = fs::remove_dir_all(self.copy(thread).folder);
        Box::pin(ready(Ok(())))
    }

    fn resolve(
        &self,
        at: ThreadFolder,
        paths: Vec<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, CopyError>> {
        let copy = self.copied(at.thread).map(|_| self.copy(at.thread));
        let resolved = paths.into_iter().filter_map(|path| {
            let in_copy = copy.as_ref()?.path_in_copy(&path)?;
            Some((path, in_copy))
        });
        Box::pin(ready(Ok(resolved.collect())))
    }

    fn changes(
        &self,
        at: ThreadFolder,
        has_overlaps: bool,
    ) -> BoxFuture<'_, Result<Option<CopyChanges>, CopyError>> {
        let thread = at.thread;
        let changes = self.copied(thread).map(|_| {
            let files = self.pending(thread).into_iter();
            let files: Vec<_> = files
                .map(|(path, (before, after))| file_diff(path, before, after))
                .collect();
            CopyChanges {
                copy: self.copy(thread),
                diff: CheckpointDiff {
                    unified: files.iter().map(unified).collect(),
                    files,
                    gaps: Vec::new(),
                },
                conflicts: self.conflicts(thread),
                overlaps: match has_overlaps {
                    true => self.overlaps(thread),
                    false => Vec::new(),
                },
            }
        });
        Box::pin(ready(Ok(changes)))
    }

    fn apply(
        &self,
        at: ThreadFolder,
        request: ApplyChanges,
    ) -> BoxFuture<'_, Result<FileRestore, CopyError>> {
        Box::pin(ready(self.applied(at.thread, &request)))
    }
}
