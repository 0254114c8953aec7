//! The changes of one or more checkpoints.

use std::collections::BTreeSet;

use raddle_workspace::{Snapshot, WorkspacePath};

/// Two snapshots that differ in the changed paths alone: the first state of each path, and its last
/// one.
#[derive(Clone, Debug)]
pub(super) struct ChangeSet {
    pub before: Snapshot,
    pub after: Snapshot,
    /// Paths that a file tool of the agent named and wrote.
    pub by_agent: BTreeSet<WorkspacePath>,
    /// Paths whose change may be of another program.
    pub unknown: BTreeSet<WorkspacePath>,
}

impl ChangeSet {
    /// Returns a set without changes.
    pub fn empty(at: &Snapshot) -> Self {
        Self {
            before: at.clone(),
            after: at.clone(),
            by_agent: BTreeSet::new(),
            unknown: BTreeSet::new(),
        }
    }

    pub fn paths(&self) -> BTreeSet<WorkspacePath> {
        let changes = self.before.changes(&self.after).into_iter();
        changes.map(|it| it.path).collect()
    }

    /// Adds changes of these paths from one snapshot to the next. If a path was changed by others
    /// since the last change here, its two states hide that change, so its author is not known.
    pub fn add(&mut self, from: &Snapshot, to: &Snapshot, paths: &BTreeSet<WorkspacePath>) {
        let known = self.paths();
        let new = paths.difference(&known).cloned().collect();
        let again = paths.intersection(&known);
        let is_foreign = |it: &&WorkspacePath| self.after.entry(it) != from.entry(it);
        self.unknown.extend(again.filter(is_foreign).cloned());
        self.before = self.before.with_paths_of(from, &new);
        self.after = self.after.with_paths_of(to, paths);
    }

    /// Adds the changes of a later set.
    pub fn extend(&mut self, later: &Self) {
        self.add(&later.before, &later.after, &later.paths());
        self.by_agent.extend(later.by_agent.iter().cloned());
        self.unknown.extend(later.unknown.iter().cloned());
    }

    /// Returns the same changes, with everything else as in the given snapshot.
    pub fn rebased(&self, on: &Snapshot) -> Self {
        let paths = self.paths();
        Self {
            before: on.with_paths_of(&self.before, &paths),
            after: on.with_paths_of(&self.after, &paths),
            by_agent: self.by_agent.clone(),
            unknown: self.unknown.clone(),
        }
    }
}
