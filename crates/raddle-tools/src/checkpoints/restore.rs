//! Restoring the files of checkpoints.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use raddle_core::ThreadId;
use raddle_core::ports::{
    CheckpointError, ConflictReason, CopyError, FileConflict, FileRestore, RestoreEffect,
    RestoreFiles, RestoredFile, WorkspaceCopy,
};
use raddle_sandbox::{HoldConflict, HoldError};
use raddle_workspace::{
    Error, FileEntry, NoFaults, RestorePlan, RestoreRequest, RestoreStep, WorkspacePath,
};

use super::change_set::ChangeSet;
use super::copies;
use super::log::{LogEntry, LogState};
use super::tracked_folder::TrackedFolder;
use super::{Inner, load, stored_entry, view};
use crate::shell;

/// Wait of one try for files that an approved command holds.
const HELD_WAIT: Duration = Duration::from_millis(100);

/// Wait of a restore for tools in the folder.
const BUSY_WAIT: Duration = Duration::from_secs(2);

/// Time between two looks at such tools.
const BUSY_POLL: Duration = Duration::from_millis(20);

/// Returns what a restore would do.
pub(super) fn preview(
    inner: &Inner,
    thread: ThreadId,
    request: &RestoreFiles,
) -> Result<FileRestore, CheckpointError> {
    let entries = later_entries(inner.entries(thread)?, request)?;
    inner.with_folder(&entries[0].folder, |folder| {
        let changes = joined(folder, &entries)?;
        let planned = PlannedRestore::new(folder, &changes, request)?;
        Ok(planned.result(None))
    })
}

/// Restores the files, all of them or none. Waits for tools that are about to end: those of a turn
/// that was stopped for this.
pub(super) fn restore(
    inner: &Inner,
    thread: ThreadId,
    request: &RestoreFiles,
) -> Result<FileRestore, CheckpointError> {
    let is_busy = |it: &CheckpointError| matches!(it, CheckpointError::Busy(_));
    when_idle(|| restore_once(inner, thread, request), is_busy)
}

/// Brings a new copy of a folder to the state before a checkpoint of a thread that worked in the
/// folder. `log`: the checkpoints of that thread. Returns the files that changed since the agent left
/// them, which stay as they are.
pub(super) fn restore_copy(
    inner: &Inner,
    log: Vec<LogEntry>,
    request: &RestoreFiles,
    copy: &WorkspaceCopy,
) -> Result<Vec<FileConflict>, CopyError> {
    let entries = later_entries(log, request)?;
    let folder = &entries[0].folder;
    let in_copy = folder.to_str().and_then(|it| copy.path_in_copy(it));
    let in_copy = in_copy.ok_or_else(|| {
        CopyError::CannotCopy(format!(
            "the later turns worked in {}, which is not in the copy of {}: leave out `workspace`, or \
             fork the thread as it is now",
            folder.display(),
            copy.origin
        ))
    })?;
    inner.with_folder(folder, |source| {
        let changes = joined(source, &entries)?;
        inner.with_folder(Path::new(&in_copy), |folder| {
            let (before, paths) = (&changes.before, changes.paths());
            let imported = folder.workspace.import(&source.workspace, before, &paths);
            imported.map_err(view::failed)?;
            let planned = PlannedRestore::new(folder, &changes, request)?;
            let restored = folder.workspace.restore(&planned.plan, &NoFaults);
            restored.map_err(view::failed)?;
            Ok(planned.conflicts)
        })
    })
}

/// Repeats an operation while tools run in the folder, for a short time.
pub(super) fn when_idle<T, E>(
    operation: impl Fn() -> Result<T, E>,
    is_busy: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let end = Instant::now() + BUSY_WAIT;
    loop {
        match operation() {
            Err(error) if is_busy(&error) && Instant::now() < end => std::thread::sleep(BUSY_POLL),
            done => return done,
        }
    }
}

fn restore_once(
    inner: &Inner,
    thread: ThreadId,
    request: &RestoreFiles,
) -> Result<FileRestore, CheckpointError> {
    let entries = later_entries(inner.entries(thread)?, request)?;
    let root = &entries[0].folder;
    inner.with_folder(root, |folder| {
        let _idle = claim_idle(folder)?;
        let changes = joined(folder, &entries)?;
        let planned = PlannedRestore::new(folder, &changes, request)?;
        let source = RestoreSource::Checkpoint {
            id: entries[0].id,
            is_applied: entries[0].is_applied,
        };
        carry_out(
            inner,
            thread,
            folder,
            &planned,
            source,
            |id| match entries[0].is_applied {
                true => copies::note_undo(inner, root, (thread, id), &planned),
                false => Ok(()),
            },
        )
    })
}

/// Keeps tools from starting in the folder until the result is dropped.
pub(super) fn claim_idle(folder: &TrackedFolder) -> Result<File, CheckpointError> {
    let idle = folder.claim_idle().map_err(view::disk_failed)?;
    idle.ok_or_else(|| {
        CheckpointError::Busy(
            "a tool of this or another thread runs in the folder: interrupt it or wait, and try \
             again"
                .to_owned(),
        )
    })
}

/// Where the new state of the files comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestoreSource {
    /// The state before this checkpoint.
    Checkpoint {
        id: u64,
        /// Whether the checkpoint is that of changes from a copy.
        is_applied: bool,
    },
    /// The copy in which the thread works.
    Copy,
}

/// Carries out a restore, and adds its checkpoint. `note` is called with the id of the checkpoint
/// before anything changes.
pub(super) fn carry_out(
    inner: &Inner,
    thread: ThreadId,
    folder: &mut TrackedFolder,
    planned: &PlannedRestore,
    source: RestoreSource,
    note: impl FnOnce(u64) -> Result<(), CheckpointError>,
) -> Result<FileRestore, CheckpointError> {
    if planned.plan.steps.is_empty() {
        return Ok(planned.result(None));
    }
    let files = planned.plan.steps.iter();
    let files: Vec<PathBuf> = files
        .map(|it| folder.root.join(it.path.as_path()))
        .collect();
    let holds = &inner.options.holds;
    let _claim = match holds.claim_files("a restore of files", &files, HELD_WAIT) {
        Ok(claim) => claim,
        Err(HoldError::Busy(HoldConflict { path, about })) => {
            return Err(CheckpointError::Busy(format!(
                "{} is held by an approved command that runs outside the sandbox: {}. End it or \
                 wait for it, and try again",
                path.display(),
                shell::display_line(&about)
            )));
        }
        Err(error) => return Err(CheckpointError::Failed(error.to_string())),
    };
    // The checkpoint comes first: after the death of the process the restore is completed, and
    // must have one.
    let id = inner.next_id(thread)?;
    let stored = stored_entry(folder, &planned.changes(), LogState::Open)?;
    let (restored, is_applied) = match source {
        RestoreSource::Checkpoint { id, is_applied } => (Some(id), is_applied),
        RestoreSource::Copy => (None, true),
    };
    let entry = LogEntry {
        id,
        restored,
        is_applied,
        at: (inner.options.clock)(),
        ..stored
    };
    inner.append(thread, &entry)?;
    let done = match note(id) {
        Ok(()) => restored_or_recovered(folder, &planned.plan)?.map_err(view::failed),
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        inner.append(thread, &not_restored(entry))?;
        return Err(error);
    }
    let (files, conflicts) = (files.len(), planned.conflicts.len());
    tracing::info!(%thread, folder = ?folder.root, files, conflicts, "files were restored");
    // The restore happened, so neither may fail it: the next look completes the checkpoint too.
    let completed = LogEntry {
        state: LogState::Complete,
        ..entry
    };
    let noted = inner.append(thread, &completed).err();
    let looked = folder.look_now(&planned.paths()).map_err(view::failed);
    for error in noted.into_iter().chain(looked.err()) {
        tracing::warn!(%thread, folder = ?folder.root, %error, "the checkpoint of a restore is not complete yet");
    }
    Ok(planned.result(Some(id)))
}

/// Returns the checkpoint of a restore that did not happen.
fn not_restored(entry: LogEntry) -> LogEntry {
    LogEntry {
        after: entry.before.clone(),
        files: 0,
        restored: None,
        state: LogState::Complete,
        ..entry
    }
}

/// Returns the checkpoint of a restore whose process died. Opening the folder has completed the
/// restore, or undone it, which the files tell.
pub(super) fn completed(
    folder: &mut TrackedFolder,
    entry: LogEntry,
) -> Result<LogEntry, CheckpointError> {
    let changes = load(folder, &entry)?;
    let paths = changes.paths();
    let now = folder.look_now(&paths).map_err(view::failed)?;
    let mut paths = paths.iter();
    // If the user edited a file since, this cannot tell. Then nothing of the agent's is hidden.
    Ok(
        match paths.all(|it| now.entry(it) == changes.after.entry(it)) {
            true => LogEntry {
                state: LogState::Complete,
                ..entry
            },
            false => not_restored(entry),
        },
    )
}

/// Restores the files. Returns the error with which nothing was restored; fails if that is not known
/// before the folder is opened again.
fn restored_or_recovered(
    folder: &mut TrackedFolder,
    plan: &RestorePlan,
) -> Result<Result<(), Error>, CheckpointError> {
    let Err(error) = folder.workspace.restore(plan, &NoFaults) else {
        return Ok(Ok(()));
    };
    if matches!(error, Error::NotRestored(_) | Error::Changed(_)) {
        return Ok(Err(error));
    }
    match folder.workspace.recover(&NoFaults) {
        Ok(Some(outcome)) if !outcome.is_undone => Ok(Ok(())),
        Ok(_) => Ok(Err(error)),
        Err(recovery) => {
            tracing::warn!(folder = ?folder.root, %recovery, "a restore of files is neither complete nor undone");
            Err(CheckpointError::Failed(format!(
                "{error}; the next command in the folder, or the next restore, completes or undoes it"
            )))
        }
    }
}

/// Returns the requested checkpoint and all later ones, which must be in one folder.
fn later_entries(
    entries: Vec<LogEntry>,
    request: &RestoreFiles,
) -> Result<Vec<LogEntry>, CheckpointError> {
    let at = entries
        .iter()
        .position(|it| it.id.to_string() == request.checkpoint);
    let at = at.ok_or(CheckpointError::NoSuchCheckpoint)?;
    let reversed = reversed(&entries[at..]);
    let folder = entries[at].folder.clone();
    let mut later = entries[at..].to_vec();
    // Changes elsewhere that were reversed since need not be reversed again. Those that the user
    // applied from a copy to its origin are undone on their own.
    let is_applied = entries[at].is_applied;
    let is_apart = |it: &LogEntry| is_applied || it.is_applied || reversed.contains(&it.id);
    later.retain(|it| it.folder == folder || !is_apart(it));
    check_one_folder(&later)?;
    Ok(later)
}

/// Returns the ids of the checkpoints that later restores reversed, and of these restores.
fn reversed(entries: &[LogEntry]) -> BTreeSet<u64> {
    let mut reversed = BTreeSet::new();
    for restore in entries.iter().rev() {
        if let Some(oldest) = restore.restored
            && !reversed.contains(&restore.id)
        {
            let range = entries.iter().map(|it| it.id);
            reversed.extend(range.filter(|it| (oldest..=restore.id).contains(it)));
        }
    }
    reversed
}

/// Rejects checkpoints of different folders.
pub(super) fn check_one_folder(entries: &[LogEntry]) -> Result<(), CheckpointError> {
    let first = &entries[0].folder;
    match entries.iter().find(|it| it.folder != *first) {
        Some(other) => Err(CheckpointError::OtherFolder(
            first.display().to_string(),
            other.folder.display().to_string(),
        )),
        None => Ok(()),
    }
}

/// Joins the changes of some checkpoints.
pub(super) fn joined(
    folder: &TrackedFolder,
    entries: &[LogEntry],
) -> Result<ChangeSet, CheckpointError> {
    let mut sum: Option<ChangeSet> = None;
    for entry in entries {
        let changes = load(folder, entry)?;
        match &mut sum {
            Some(sum) => sum.extend(&changes),
            None => sum = Some(changes),
        }
    }
    sum.ok_or(CheckpointError::NoSuchCheckpoint)
}

pub(super) struct PlannedRestore {
    pub plan: RestorePlan,
    pub conflicts: Vec<FileConflict>,
}

impl PlannedRestore {
    /// Plans to reverse changes.
    fn new(
        folder: &mut TrackedFolder,
        changes: &ChangeSet,
        request: &RestoreFiles,
    ) -> Result<Self, CheckpointError> {
        let all = changes.paths();
        let overwrite = request.overwrite.iter().map(|path| {
            let parsed = WorkspacePath::new(path).filter(|it| all.contains(it));
            parsed.ok_or_else(|| CheckpointError::NotChanged(path.clone()))
        });
        let overwrite = overwrite.collect::<Result<BTreeSet<_>, _>>()?;
        let now = folder.look_now(&all).map_err(view::failed)?;
        let rebased = changes.rebased(&now);
        let is_unknown =
            |it: &&WorkspacePath| changes.unknown.contains(*it) && !overwrite.contains(*it);
        let paths: BTreeSet<_> = all.iter().filter(|it| !is_unknown(it)).cloned().collect();
        let plan = folder.workspace.plan_restore(&RestoreRequest {
            to: &rebased.before,
            known: &rebased.after,
            paths: &paths,
            overwrite: &overwrite,
        });
        let plan = plan.map_err(view::failed)?;
        let mut conflicts: Vec<FileConflict> = plan
            .conflicts
            .iter()
            .map(|it| {
                let states = [it.before, it.known, it.now];
                conflict(&it.path, states, ConflictReason::Changed)
            })
            .collect();
        for path in all.iter().filter(is_unknown) {
            let states = [&rebased.before, &rebased.after, &now].map(|it| it.entry(path));
            // The file is as it was before already.
            if states[0] != states[2] {
                conflicts.push(conflict(path, states, ConflictReason::AuthorUnknown));
            }
        }
        conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { plan, conflicts })
    }

    fn paths(&self) -> BTreeSet<WorkspacePath> {
        self.plan.steps.iter().map(|it| it.path.clone()).collect()
    }

    /// Returns the changes that the restore makes.
    fn changes(&self) -> ChangeSet {
        let mut changes = ChangeSet::empty(&self.plan.current);
        changes.add(&self.plan.current, &self.plan.target, &self.paths());
        changes
    }

    fn result(&self, checkpoint: Option<u64>) -> FileRestore {
        let restored = self.plan.steps.iter().map(|it| RestoredFile {
            path: it.path.to_string(),
            effect: effect(it),
        });
        FileRestore {
            restored: restored.collect(),
            conflicts: self.conflicts.clone(),
            checkpoint: checkpoint.map(|it| it.to_string()),
        }
    }
}

fn effect(step: &RestoreStep) -> RestoreEffect {
    match (&step.now, &step.then) {
        (None, _) => RestoreEffect::Created,
        (Some(_), None) => RestoreEffect::Deleted,
        (Some(_), Some(_)) => RestoreEffect::Changed,
    }
}

pub(super) fn conflict(
    path: &WorkspacePath,
    states: [Option<FileEntry>; 3],
    reason: ConflictReason,
) -> FileConflict {
    let [before, known, now] = states.map(|it| it.map(|it| it.hash.to_string()));
    FileConflict {
        path: path.to_string(),
        before,
        known,
        now,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::TurnId;

    use super::*;

    /// Each case: the checkpoints, each with its folder and, of a restore, the one it reversed; `!` if
    /// it was applied from a copy. Then those that restoring the first one restores.
    #[test]
    fn reversed_changes_of_another_folder_do_not_count() {
        for (all, expected) in [
            ("1a 2a 3a=2", Ok("1 2 3")),
            ("1a 2b 3b=2", Ok("1")),
            ("1a 2b 3b=2 4a", Ok("1 4")),
            ("1a 2b", Err(())),
            ("1a 2b 3b=2 4b=3", Err(())),
            ("1a 2b! 3a", Ok("1 3")),
            ("1b! 2a 3b!", Ok("1 3")),
            ("1a 2b! 3b=2 4a", Ok("1 4")),
        ] {
            let entries = all.split(' ').map(|it| LogEntry {
                turn: Some(TurnId::from("t")).filter(|_| it.len() == 2),
                restored: it.get(3..4).map(|it| it.parse().expect("a number")),
                is_applied: it.ends_with('!'),
                ..LogEntry::sample(it[..1].parse().expect("a number"), &it[1..2])
            });
            let request = RestoreFiles {
                checkpoint: "1".to_owned(),
                overwrite: Vec::new(),
            };
            let later = later_entries(entries.collect(), &request);
            let ids = later.map(|it| {
                let ids: Vec<String> = it.iter().map(|it| it.id.to_string()).collect();
                ids.join(" ")
            });
            assert_eq!(ids.map_err(|_| ()), expected.map(str::to_owned), "{all}");
        }
    }
}
