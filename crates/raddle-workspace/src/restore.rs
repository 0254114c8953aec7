//! Returning files to a snapshot.
//!
//! A restore has two steps. The plan says what would be done and changes nothing. It compares each
//! path with the two states that the caller knows: the one to return to, and the one that the agent
//! left. A path with any other content was changed by the user since. It is a conflict, and stays
//! as it is unless the caller names it.
//!
//! The transaction then restores all planned files or none. What a file has now is in the store
//! before it is replaced, so that the restore can be reversed by a second one.

mod disk;
mod faults;
mod intent;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};

pub use faults::{Faults, NoFaults};
pub(crate) use intent::Intent;

use crate::{EntryKind, Error, FileEntry, Snapshot, Workspace, WorkspacePath};

/// Request to restore files.
#[derive(Clone, Debug)]
pub struct RestoreRequest<'a> {
    /// The state to return to.
    pub to: &'a Snapshot,
    /// The state that the agent left.
    pub known: &'a Snapshot,
    /// The files and links that the agent changed. No other path is touched, except folders that
    /// become empty or are missing.
    pub paths: &'a BTreeSet<WorkspacePath>,
    /// The paths that are restored although they changed since.
    pub overwrite: &'a BTreeSet<WorkspacePath>,
}

/// A file or link that a restore replaces, creates or removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreStep {
    /// Its path.
    pub path: WorkspacePath,
    /// Entry that is there now.
    pub now: Option<FileEntry>,
    /// Entry that will be there.
    pub then: Option<FileEntry>,
}

/// A path that changed since the agent left it, and is left alone. All contents are in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreConflict {
    /// Its path.
    pub path: WorkspacePath,
    /// The state to return to.
    pub before: Option<FileEntry>,
    /// The state that the agent left.
    pub known: Option<FileEntry>,
    /// Entry that is there now; it may be a folder.
    pub now: Option<FileEntry>,
}

/// Steps and conflicts of a restore that has not been carried out.
#[derive(Clone, Debug)]
pub struct RestorePlan {
    /// The files and links that it would change.
    pub steps: Vec<RestoreStep>,
    /// The paths that it would leave alone.
    pub conflicts: Vec<RestoreConflict>,
    /// The state from which it starts. A restore to it reverses this one.
    pub current: Snapshot,
    /// The state of the paths to which it leads.
    pub target: Snapshot,
    /// Folders to remove if they are empty, with the mode to give them if the restore fails.
    folders_before: BTreeMap<WorkspacePath, u32>,
    /// Folders to make if they are missing.
    folders_after: BTreeMap<WorkspacePath, u32>,
}

/// Result of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreOutcome {
    /// The paths that have the planned state now.
    pub restored: Vec<WorkspacePath>,
    /// The paths that changed after the restore was interrupted, and were left alone.
    pub conflicts: Vec<WorkspacePath>,
    /// Whether an interrupted restore was undone, and the paths have the state from before it.
    pub is_undone: bool,
}

impl Workspace {
    /// Says what a restore would do. It reads the named paths and writes only to the store.
    pub fn plan_restore(&mut self, request: &RestoreRequest<'_>) -> Result<RestorePlan, Error> {
        self.refuse_interrupted()?;
        let current = self.update(request.known, request.paths)?;
        let mut plan = RestorePlan {
            steps: Vec::new(),
            conflicts: Vec::new(),
            folders_before: BTreeMap::new(),
            folders_after: BTreeMap::new(),
            current,
            target: request.to.clone(),
        };
        for path in request.paths {
            plan.add(request, path);
        }
        plan.keep_folders_of_others(request);
        plan.add_folders(request.to);
        Ok(plan)
    }

    /// Carries out a plan: all of its steps or none. A path that changed since the plan was made
    /// stops it. After [`Error::Changed`] and [`Error::NotRestored`] every file is as before; after
    /// any other error, [`Workspace::recover`] must be called.
    pub fn restore(
        &mut self,
        plan: &RestorePlan,
        faults: &dyn Faults,
    ) -> Result<RestoreOutcome, Error> {
        self.refuse_interrupted()?;
        if plan.steps.is_empty() {
            return Ok(RestoreOutcome::default());
        }
        let intent = Intent::new(plan);
        transaction::run(self, &intent, faults)?;
        Ok(RestoreOutcome {
            restored: plan.steps.iter().map(|it| it.path.clone()).collect(),
            ..RestoreOutcome::default()
        })
    }

    /// Completes a restore that was cut short by the death of the process; `None` if there is
    /// none. It finishes the restore, or undoes it if no file was replaced, if it was already being
    /// undone, or if it cannot be finished.
    pub fn recover(&mut self, faults: &dyn Faults) -> Result<Option<RestoreOutcome>, Error> {
        match Intent::load(self.store.folder())? {
            Some(intent) => transaction::recover(self, intent, faults).map(Some),
            None => Ok(None),
        }
    }

    /// Refuses to go on while an interrupted restore leaves the files in a mixed state.
    pub(crate) fn refuse_interrupted(&self) -> Result<(), Error> {
        match Intent::exists(self.store.folder()) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }
}

impl RestorePlan {
    fn add(&mut self, request: &RestoreRequest<'_>, path: &WorkspacePath) {
        let leaf = |it: Option<FileEntry>| it.and_then(FileEntry::leaf);
        let (before, known) = (request.to.entry(path), request.known.entry(path));
        let now = self.current.entry(path);
        let then = leaf(before);
        // Nothing is known of a path in a folder that cannot be read: it is not absent.
        let is_readable = self.current.covers(path);
        let is_known = request.to.covers(path) && request.known.covers(path) && is_readable;
        let is_unchanged = leaf(now) == leaf(known);
        if is_known && leaf(now) == then {
            return;
        }
        let may_replace = is_unchanged || request.overwrite.contains(path) && is_readable;
        if is_known && may_replace {
            self.steps.push(RestoreStep {
                path: path.clone(),
                now: leaf(now),
                then,
            });
        } else {
            self.conflicts.push(RestoreConflict {
                path: path.clone(),
                before,
                known,
                now,
            });
        }
    }

    /// Takes out the steps that would replace a folder with something in it that stays, and those
    /// below a file that stays.
    fn keep_folders_of_others(&mut self, request: &RestoreRequest<'_>) {
        while let Some(at) = self.steps.iter().position(|it| self.is_blocked(it)) {
            let step = self.steps.remove(at);
            self.conflicts.push(RestoreConflict {
                before: step.then,
                known: request.known.entry(&step.path),
                now: self.current.entry(&step.path),
                path: step.path,
            });
        }
    }

    /// Reports whether a file that stays is in the place of a step, or of a folder above it.
    fn is_blocked(&self, step: &RestoreStep) -> bool {
        let is_leaving = |path: &WorkspacePath| {
            let mut steps = self.steps.iter();
            steps.any(|it| it.path == *path && it.now.is_some() && it.then.is_none())
        };
        let is_leaf =
            |path: &WorkspacePath| self.current.entry(path).and_then(FileEntry::leaf).is_some();
        let stays = |path: &WorkspacePath| is_leaf(path) && !is_leaving(path);
        step.then.is_some()
            && (std::iter::successors(step.path.parent(), WorkspacePath::parent)
                .any(|it| stays(&it))
                || self.current.entries_in(&step.path).iter().any(stays))
    }

    fn add_folders(&mut self, to: &Snapshot) {
        for step in &self.steps {
            let own = Some(step.path.clone());
            for folder in std::iter::successors(own, WorkspacePath::parent) {
                let mode = |it: Option<FileEntry>| {
                    it.filter(|it| it.kind == EntryKind::Folder)
                        .map(|it| it.mode)
                };
                let (now, then) = (mode(self.current.entry(&folder)), mode(to.entry(&folder)));
                match (now, then) {
                    (Some(mode), None) if to.covers(&folder) => {
                        self.folders_before.insert(folder, mode);
                    }
                    (None, Some(mode)) => {
                        self.folders_after.insert(folder, mode);
                    }
                    _ => {}
                }
            }
        }
    }
}
