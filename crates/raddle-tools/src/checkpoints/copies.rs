//! Copies of workspaces: a thread works in its copy, and the user applies the changes.
//!
//! The copy is in a folder of its own, `THREAD/NAME`, where NAME is that of the user's folder. What
//! Raddle knows of it is among the checkpoints, which are hidden from commands:
//!
//! ```text
//! THREAD/copied      state of the copy when it was made
//! THREAD/seen        state of the copy when it was last looked at
//! THREAD/applied     the states of the user's files before and after each apply
//! THREAD/copy.json   the user's folder; written last, so a copy without it is incomplete
//! ```
//!
//! Of a fork there is only `copy.json`, with the thread in whose copy it works.
//!
//! To apply changes is a restore in the user's folder, to the state of the copy. So it has the same
//! transaction, and a checkpoint by which it can be undone. A file of the user that has another state
//! than the copied or the last applied one is a conflict. The contents are in the store of the user's
//! folder.
//!
//! Nothing here removes a copy in which an agent has worked.

mod applied;
mod record;
mod selection;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use raddle_core::ThreadId;
use raddle_core::ports::{
    ApplyChanges, BoxFuture, CheckpointDiff, CheckpointError, ConflictReason, CopyChanges,
    CopyError, CopyOverlap, CreatedCopy, FileConflict, FileRestore, ForkedFiles, NewCopy,
    RestoreFiles, ThreadFolder, WorkspaceCopies, WorkspaceCopy,
};
use raddle_sandbox::git_control_paths;
use raddle_workspace::{
    CopyLimits, DiffLimits, FileEntry, GapReason, RestoreRequest, Snapshot, WorkspaceDiff,
    WorkspacePath, copy_folder,
};

use self::applied::{AppliedLine, AppliedStates, FileState, Relation};
use self::record::{CopyFiles, Record};
use self::selection::Target;
use super::change_set::ChangeSet;
use super::log::LogEntry;
use super::restore::{
    PlannedRestore, RestoreSource, carry_out, claim_idle, conflict, restore_copy, when_idle,
};
use super::tracked_folder::TrackedFolder;
use super::view::failed;
use super::{FileCheckpoints, Inner, view};

/// Limit: other copies of the same folder that are compared with one; beyond it, the older ones are
/// left out.
const COMPARED_MAX: usize = 16;

impl WorkspaceCopies for FileCheckpoints {
    fn create(
        &self,
        thread: ThreadId,
        request: NewCopy,
    ) -> BoxFuture<'_, Result<CreatedCopy, CopyError>> {
        self.blocking(move |inner| create(inner, thread, &request))
    }

    fn abandon(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), CopyError>> {
        self.blocking(move |inner| Ok(inner.copies().files(thread).remove()?))
    }

    fn fork(&self, from: ThreadFolder, to: ThreadId) -> BoxFuture<'_, Result<(), CopyError>> {
        self.blocking(move |inner| {
            let Some((files, record)) = inner.find_copy(&from)? else {
                return Ok(());
            };
            let now = (inner.options.clock)();
            Ok(inner.copies().share(&files, &record, to, now)?)
        })
    }

    fn resolve(
        &self,
        at: ThreadFolder,
        paths: Vec<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, CopyError>> {
        self.blocking(move |inner| {
            let copy = inner.find_copy(&at)?.map(|(files, it)| it.copy(&files));
            Ok(copy.map_or_else(BTreeMap::new, |it| resolved(&it, paths)))
        })
    }

    fn changes(
        &self,
        at: ThreadFolder,
        has_overlaps: bool,
    ) -> BoxFuture<'_, Result<Option<CopyChanges>, CopyError>> {
        self.blocking(move |inner| changes(inner, &at, has_overlaps))
    }

    fn apply(
        &self,
        at: ThreadFolder,
        request: ApplyChanges,
    ) -> BoxFuture<'_, Result<FileRestore, CopyError>> {
        self.blocking(move |inner| apply(inner, &at, &request))
    }
}

impl Inner {
    pub(super) fn copies(&self) -> CopyFolders {
        CopyFolders {
            checkpoints: self.options.folder.clone(),
            copies: self.options.copies.clone(),
        }
    }

    /// Returns the copy that was made for a thread, or the one in which its working directory is.
    fn find_copy(&self, at: &ThreadFolder) -> Result<Option<(CopyFiles, Record)>, CopyError> {
        let copies = self.copies();
        let around = Path::new(&at.cwd).strip_prefix(&copies.copies).ok();
        let around = around.and_then(|it| it.iter().next()?.to_str()?.parse().ok());
        for thread in std::iter::once(at.thread).chain(around) {
            let Some((files, record)) = copies.find(thread)? else {
                continue;
            };
            if self.is_too_wide(record.origin()) {
                let why = format!(
                    "{}: it contains your home folder or the files of Raddle",
                    record.origin().display()
                );
                return Err(CopyError::CannotCopy(why));
            }
            return Ok(Some((files, record)));
        }
        Ok(None)
    }

    /// Returns the repository in which a folder is, or the folder itself.
    fn workspace_around<'a>(&self, folder: &'a Path) -> &'a Path {
        let mut around = folder.ancestors().take_while(|it| !self.is_too_wide(it));
        around
            .find(|it| fs::symlink_metadata(it.join(".git")).is_ok())
            .unwrap_or(folder)
    }
}

/// Copies a workspace.
fn create(inner: &Inner, thread: ThreadId, request: &NewCopy) -> Result<CreatedCopy, CopyError> {
    if !(inner.options.is_enabled)() {
        return Err(CheckpointError::Disabled.into());
    }
    let cannot = |why: String| CopyError::CannotCopy(format!("{}: {why}", request.cwd));
    let real = fs::canonicalize(&request.cwd);
    let real = real.map_err(|it| cannot(format!("cannot be copied: {it}")))?;
    let Some(cwd) = real.to_str() else {
        return Err(cannot(
            "a path that is not UTF-8 cannot be copied".to_owned(),
        ));
    };
    let source = CopySource::find(inner, request, &real)?;
    let files = inner.copies().files(thread);
    let created = |copy: &WorkspaceCopy, is_new, conflicts| {
        let mut copy = copy.clone();
        if source.copied.is_some() {
            // The paths of the request are in the other copy.
            copy.origin = source.folder.display().to_string();
        }
        Some(CreatedCopy {
            cwd: copy.path_in_copy(cwd)?,
            folders: resolved(&copy, request.folders.clone()),
            is_new,
            conflicts,
        })
    };
    if let Some(record) = files.record()? {
        let copy = record.copy(&files);
        if record.is_left() {
            return Err(cannot(format!(
                "a deleted thread with the same `clientRequestId` left its copy in {}: use another one",
                copy.folder
            )));
        }
        // The server died in an earlier start, before the thread was stored.
        return created(&copy, false, Vec::new()).ok_or_else(|| {
            cannot("the thread has a copy of another folder; start another thread".to_owned())
        });
    }
    let made = (|| {
        let made = match make(inner, &files, &source, &real)? {
            // The repository ignores the folder, so its changes would not show.
            None if source.copied.is_none() => {
                make(inner, &files, &CopySource::of(&real, request), &real)?
            }
            made => made,
        };
        let (copy, conflicts) = made.ok_or_else(|| cannot("its own rules ignore it".to_owned()))?;
        created(&copy, true, conflicts)
            .ok_or_else(|| cannot("it was moved while it was copied; try again".to_owned()))
    })();
    made.inspect_err(|_: &CopyError| {
        let _ = files.remove();
    })
}

/// A folder that is copied.
struct CopySource {
    folder: PathBuf,
    /// The user's folder, to which the changes are applied.
    origin: PathBuf,
    /// The files of the copy that the folder is, if it is one.
    copied: Option<CopyFiles>,
    /// Changes that a fork reverses in its copy.
    restored: Option<ForkRestore>,
}

impl CopySource {
    /// Returns a folder of the user.
    fn of(folder: &Path, request: &NewCopy) -> Self {
        Self {
            folder: folder.to_owned(),
            origin: folder.to_owned(),
            copied: None,
            restored: ForkRestore::of(request),
        }
    }

    /// Returns the copy of the forked thread if the working directory is in it, and otherwise the
    /// workspace around the working directory.
    fn find(inner: &Inner, request: &NewCopy, cwd: &Path) -> Result<Self, CopyError> {
        if let Some(fork) = &request.fork
            && let Some((files, record)) = inner.find_copy(&fork.from)?
            && cwd.starts_with(files.copy(&record))
        {
            return Ok(Self {
                folder: files.copy(&record),
                origin: record.origin().to_owned(),
                copied: Some(files),
                restored: ForkRestore::of(request),
            });
        }
        if inner.is_too_wide(cwd) {
            return Err(CopyError::CannotCopy(format!(
                "{}: it contains your home folder or the files of Raddle, so it cannot be copied; \
                 choose a folder in it",
                request.cwd
            )));
        }
        Ok(Self::of(inner.workspace_around(cwd), request))
    }
}

/// The changes of the later turns, which a fork reverses in its copy.
struct ForkRestore {
    /// The thread that is forked.
    thread: ThreadId,
    files: RestoreFiles,
}

impl ForkRestore {
    fn of(request: &NewCopy) -> Option<Self> {
        let ForkedFiles { from, checkpoint } = request.fork.as_ref()?;
        Some(Self {
            thread: from.thread,
            files: RestoreFiles {
                checkpoint: checkpoint.clone()?,
                overwrite: Vec::new(),
            },
        })
    }

    /// Returns the checkpoints of the forked thread. Fails while a tool runs in their folder, because
    /// its changes are not known before its end.
    fn idle_log(&self, inner: &Inner) -> Result<Vec<LogEntry>, CopyError> {
        let look = || {
            let log = inner.entries(self.thread)?;
            let mut restored = log.iter();
            let restored = restored.find(|it| it.id.to_string() == self.files.checkpoint);
            let restored = restored.ok_or(CheckpointError::NoSuchCheckpoint)?;
            inner.with_folder(&restored.folder, |it| claim_idle(it).map(drop))?;
            Ok(log)
        };
        when_idle(look, is_busy)
    }
}

/// Whether an operation failed because a tool runs in the folder.
fn is_busy(error: &CopyError) -> bool {
    matches!(error, CopyError::Files(CheckpointError::Busy(_)))
}

/// Makes a copy of a workspace; `None` if its rules ignore the working directory in it.
fn make(
    inner: &Inner,
    files: &CopyFiles,
    source: &CopySource,
    cwd: &Path,
) -> Result<Option<(WorkspaceCopy, Vec<FileConflict>)>, CopyError> {
    let cannot = |it| CopyError::CannotCopy(format!("{}: {it}", source.folder.display()));
    // A start that was interrupted left it incomplete.
    files.remove()?;
    let restored = source.restored.as_ref();
    let idle_log = || restored.map(|it| it.idle_log(inner)).transpose();
    let log = idle_log()?;
    let record = Record::new(
        &source.origin.display().to_string(),
        (inner.options.clock)(),
    );
    let folder = files.create(&record)?;
    let left_out = copy_folder(&source.folder, &folder, &CopyLimits::default()).map_err(cannot)?;
    let copied = match &source.copied {
        Some(copied) => {
            // Without its files, these would be deletions.
            if let Some(gap) = left_out
                .iter()
                .find(|it| it.reason == GapReason::Unreadable)
            {
                let path = gap.path.as_ref().map(ToString::to_string);
                return Err(CopyError::CannotCopy(format!(
                    "{}: {} cannot be read",
                    source.folder.display(),
                    path.unwrap_or_default()
                )));
            }
            // The changes of the other copy are changes of this one too.
            applied::copy(&copied.applied(), &files.applied())?;
            Snapshot::open(&copied.copied()).map_err(failed)?
        }
        None => inner.with_folder(&source.origin, |origin| {
            origin.workspace.snapshot_of(&folder, None).map_err(failed)
        })?,
    };
    let inside = cwd.strip_prefix(&source.folder).ok();
    if let Some(inside) = inside.and_then(WorkspacePath::new)
        && !copied.covers(&inside)
    {
        return Ok(None);
    }
    copied.save(&files.copied()).map_err(failed)?;
    let conflicts = match restored.zip(log.clone()) {
        Some((restored, log)) => {
            let copy = WorkspaceCopy {
                origin: source.folder.display().to_string(),
                folder: folder.display().to_string(),
            };
            restore_copy(inner, log, &restored.files, &copy)?
        }
        None => Vec::new(),
    };
    if log != idle_log()? {
        return Err(CheckpointError::Busy(
            "a tool of the thread changed files while they were copied: try again".to_owned(),
        )
        .into());
    }
    files.write(&record)?;
    tracing::info!(
        copy = ?folder,
        source = ?source.folder,
        left_out = left_out.len(),
        conflicts = conflicts.len(),
        "the workspace was copied"
    );
    Ok(Some((record.copy(files), conflicts)))
}

/// Returns where paths of the user's folder are in its copy, also those that lead there by a link.
fn resolved(copy: &WorkspaceCopy, paths: Vec<String>) -> BTreeMap<String, String> {
    let resolved = paths.into_iter().filter_map(|path| {
        let in_copy = copy.path_in_copy(&path).or_else(|| {
            let real = fs::canonicalize(&path).ok()?;
            copy.path_in_copy(real.to_str()?)
        });
        Some((path, in_copy?))
    });
    resolved.collect()
}

/// Returns the paths that control git in the repositories around some paths.
fn control_paths(origin: &Path, paths: &BTreeSet<WorkspacePath>) -> BTreeSet<PathBuf> {
    let folders = paths
        .iter()
        .flat_map(|path| std::iter::successors(path.parent(), WorkspacePath::parent));
    let folders: BTreeSet<WorkspacePath> = folders.collect();
    let folders = folders.iter().map(|it| origin.join(it.as_path()));
    let nested = folders.filter(|it| fs::symlink_metadata(it.join(".git")).is_ok());
    let repositories = std::iter::once(origin.to_owned()).chain(nested);
    repositories.flat_map(|it| git_control_paths(&it)).collect()
}

/// State of a copy and of the user's folder.
struct CopyState {
    /// The user's folder now, and with all pending changes.
    changes: ChangeSet,
    /// Changed paths that the user's folder does not have.
    pending: BTreeSet<WorkspacePath>,
    /// Those of them that are applied only if they are named.
    conflicts: BTreeMap<WorkspacePath, ConflictReason>,
    /// State of the copy when it was made.
    copied: Snapshot,
    /// State of the whole copy.
    seen: Snapshot,
}

impl CopyState {
    /// Looks at the copy and at the changed paths of the user's folder.
    fn look(
        inner: &Inner,
        folder: &mut TrackedFolder,
        files: &CopyFiles,
        record: &Record,
    ) -> Result<Self, CopyError> {
        let copied = Snapshot::open(&files.copied()).map_err(failed)?;
        let applied = AppliedStates::load(&files.applied(), |it| inner.logs.read(it))?;
        let last = Snapshot::open(&files.seen()).unwrap_or_else(|_| copied.clone());
        let seen = folder
            .workspace
            .snapshot_of(&files.copy(record), Some(&last));
        let seen = seen.map_err(failed)?;
        if seen.id() != last.id() {
            seen.save(&files.seen()).map_err(failed)?;
        }
        let changed = copied.changes(&seen).into_iter().map(|it| it.path);
        let mut changed: BTreeSet<WorkspacePath> = changed.chain(applied.paths()).collect();
        // Nothing is known of a path that the agent made unreadable: it is not deleted.
        changed.retain(|it| seen.covers(it) && copied.covers(it));
        let origin = folder.look_now(&changed).map_err(failed)?;
        let (mut pending, mut conflicts) = (BTreeSet::new(), BTreeMap::new());
        for path in &changed {
            let state = |it: &Snapshot| it.entry(path)?.leaf().map(FileState::from);
            let [was, is, now] = [&copied, &seen, &origin].map(state);
            match applied.relation(path, was, is, now) {
                Relation::Applied => continue,
                Relation::Pending => {}
                Relation::Conflict => {
                    conflicts.insert(path.clone(), ConflictReason::Changed);
                }
            }
            pending.insert(path.clone());
        }
        // The sandbox lets no command write these there. That holds for the copy too.
        let control_paths = match pending.is_empty() {
            true => BTreeSet::new(),
            false => control_paths(record.origin(), &changed),
        };
        let controls_git = pending.iter().filter(|path| {
            let path = record.origin().join(path.as_path());
            control_paths.iter().any(|it| path.starts_with(it))
        });
        conflicts.extend(controls_git.map(|it| (it.clone(), ConflictReason::ControlsGit)));
        let changes = ChangeSet {
            after: origin.with_paths_of(&seen, &pending),
            ..ChangeSet::empty(&origin)
        };
        Ok(Self {
            changes,
            pending,
            conflicts,
            copied,
            seen,
        })
    }

    fn diff(&self, folder: &TrackedFolder) -> Result<WorkspaceDiff, CopyError> {
        let ChangeSet { before, after, .. } = &self.changes;
        let limits = DiffLimits::default();
        let diff = folder.workspace.diff_within(before, after, &limits);
        Ok(diff.map_err(failed)?)
    }

    fn conflicts(&self) -> Vec<FileConflict> {
        let conflicts = self.conflicts.keys().map(|it| self.conflict(it));
        conflicts.collect()
    }

    fn conflict(&self, path: &WorkspacePath) -> FileConflict {
        let reason = self.conflicts.get(path).copied();
        let states = [&self.copied, &self.seen, &self.changes.before];
        let states = states.map(|snapshot| snapshot.entry(path));
        conflict(path, states, reason.unwrap_or(ConflictReason::Changed))
    }
}

/// Returns the changes of a copy that the user's folder does not have.
fn changes(
    inner: &Inner,
    at: &ThreadFolder,
    has_overlaps: bool,
) -> Result<Option<CopyChanges>, CopyError> {
    let Some((files, record)) = inner.find_copy(at)? else {
        return Ok(None);
    };
    let (mut changes, pending) = inner.with_folder(record.origin(), |folder| {
        let state = CopyState::look(inner, folder, &files, &record)?;
        let diff = CheckpointDiff {
            gaps: view::gaps(state.seen.gaps()),
            ..view::described(&state.diff(folder)?, &state.changes)
        };
        let changes = CopyChanges {
            copy: record.copy(&files),
            diff,
            conflicts: state.conflicts(),
            overlaps: Vec::new(),
        };
        Ok::<_, CopyError>((changes, state.pending))
    })?;
    if has_overlaps && !pending.is_empty() {
        changes.overlaps = overlaps(inner, &files, &record, &pending);
    }
    Ok(Some(changes))
}

/// Returns the threads whose copies of the same folder have changes of the same files.
fn overlaps(
    inner: &Inner,
    files: &CopyFiles,
    record: &Record,
    pending: &BTreeSet<WorkspacePath>,
) -> Vec<CopyOverlap> {
    let copies = inner.copies();
    let others = copies.threads().into_iter().filter_map(|thread| {
        let (other, record_of_other) = copies.find(thread).ok()??;
        let is_own = record_of_other.made_for().is_none();
        let is_related = is_own && other != *files && record_of_other.origin() == record.origin();
        is_related.then_some((thread, other, record_of_other))
    });
    let overlaps = others
        .take(COMPARED_MAX)
        .filter_map(|(thread, files, record)| {
            let looked = inner.with_folder(record.origin(), |folder| {
                CopyState::look(inner, folder, &files, &record)
            });
            let state = looked.inspect_err(|error| {
                tracing::debug!(%thread, %error, "a copy of the same folder is not compared");
            });
            let state = state.ok()?;
            let paths = state.pending.intersection(pending);
            let paths: Vec<String> = paths.map(ToString::to_string).collect();
            (!paths.is_empty()).then_some(CopyOverlap { thread, paths })
        });
    overlaps.collect()
}

/// Applies changes to the user's folder.
fn apply(
    inner: &Inner,
    at: &ThreadFolder,
    request: &ApplyChanges,
) -> Result<FileRestore, CopyError> {
    let (files, record) = inner.find_copy(at)?.ok_or(CopyError::NoCopy)?;
    when_idle(
        || apply_once(inner, at.thread, request, &files, &record),
        is_busy,
    )
}

fn apply_once(
    inner: &Inner,
    thread: ThreadId,
    request: &ApplyChanges,
    files: &CopyFiles,
    record: &Record,
) -> Result<FileRestore, CopyError> {
    inner.with_folder(record.origin(), |folder| {
        let _idle = claim_idle(folder)?;
        let state = CopyState::look(inner, folder, files, record)?;
        let overwrite = request.overwrite.iter().map(|path| {
            let parsed = WorkspacePath::new(path).filter(|it| state.pending.contains(it));
            parsed.ok_or_else(|| selection::not_changed(path))
        });
        let overwrite = overwrite.collect::<Result<BTreeSet<_>, _>>()?;
        let Target {
            snapshot,
            paths,
            edited,
        } = selection::target(folder, &state, request)?;
        let is_kept =
            |it: &&WorkspacePath| state.conflicts.contains_key(*it) && !overwrite.contains(*it);
        let conflicts = paths.iter().filter(is_kept);
        let conflicts: Vec<FileConflict> = conflicts.map(|it| state.conflict(it)).collect();
        let paths = paths.iter().filter(|it| !is_kept(it)).cloned().collect();
        let plan = folder.workspace.plan_restore(&RestoreRequest {
            to: &snapshot,
            known: &state.changes.before,
            paths: &paths,
            overwrite: &overwrite,
        });
        let plan = plan.map_err(failed)?;
        let of_plan = plan.conflicts.iter().map(|it| state.conflict(&it.path));
        let planned = PlannedRestore {
            conflicts: conflicts.into_iter().chain(of_plan).collect(),
            plan,
        };
        let source = RestoreSource::Copy;
        let mut lines: Vec<AppliedLine> = Vec::new();
        let applied = carry_out(inner, thread, folder, &planned, source, |checkpoint| {
            let steps = planned.plan.steps.iter().map(|it| {
                let is_part = it.then != state.seen.entry(&it.path).and_then(FileEntry::leaf);
                let was_edited = state.conflicts.contains_key(&it.path);
                let is_edited = is_part && (was_edited || edited.contains(&it.path));
                AppliedLine::of_apply(thread, checkpoint, it, is_edited)
            });
            lines.extend(steps);
            applied::append(&files.applied(), lines.iter())
        });
        if applied.is_err() {
            // The log says it too, but it goes with its thread.
            let back = lines.into_iter().map(AppliedLine::reversed);
            applied::append(&files.applied(), back)?;
        }
        Ok(applied?)
    })
}

/// Notes the undo of an apply in this folder, also in the copies of forks that know of it.
pub(super) fn note_undo(
    inner: &Inner,
    folder: &Path,
    (thread, checkpoint): (ThreadId, u64),
    planned: &PlannedRestore,
) -> Result<(), CheckpointError> {
    let copies = inner.copies();
    let steps = planned.plan.steps.iter();
    let lines: Vec<AppliedLine> = steps
        .map(|it| AppliedLine::of_undo(thread, checkpoint, it))
        .collect();
    let own = copies.find(thread)?.map(|(files, _)| files.applied());
    let mut paths: BTreeSet<PathBuf> = own.into_iter().collect();
    for other in copies.threads() {
        let files = copies.files(other);
        // A copy that is being made has no record yet, but may know of the apply.
        let record = files.record().ok().flatten();
        let is_elsewhere = record.is_some_and(|it| it.origin() != folder);
        let applied = files.applied();
        if !is_elsewhere && applied::has_lines_of(&applied, thread)? {
            paths.insert(applied);
        }
    }
    paths
        .iter()
        .try_for_each(|it| applied::append(it, lines.iter()))
}

/// Folders of a server's copies.
#[derive(Clone, Debug)]
pub struct CopyFolders {
    /// Folder of the checkpoints.
    pub checkpoints: PathBuf,
    /// Folder of the copies.
    pub copies: PathBuf,
}

impl CopyFolders {
    /// Returns the copy that was made for a thread.
    pub fn copy_of(&self, thread: ThreadId) -> Option<PathBuf> {
        let (files, record) = self.find(thread).ok()??;
        Some(files.copy(&record))
    }

    /// Returns all copies that exist: the folder of each, with the threads that work in it. A copy may
    /// be incomplete.
    pub fn all(&self) -> std::io::Result<BTreeMap<PathBuf, Vec<ThreadId>>> {
        let mut copies: BTreeMap<PathBuf, Vec<ThreadId>> = BTreeMap::new();
        for thread in self.threads() {
            let found = self.find(thread).map_err(std::io::Error::other)?;
            let files = found.map_or_else(|| self.files(thread), |(files, _)| files);
            if files.work.exists() {
                copies.entry(files.work).or_default().push(thread);
            }
        }
        Ok(copies)
    }

    /// Notes that a thread was deleted. Its copy stays.
    pub(super) fn leave(&self, thread: ThreadId) -> Result<(), CheckpointError> {
        let files = self.files(thread);
        match files.record()? {
            Some(record) => files.write(&record.left()),
            None => Ok(()),
        }
    }

    /// Returns the threads that work in copies of this folder, or of one around it, the newest first.
    pub fn threads_of(&self, folder: &Path) -> Vec<ThreadId> {
        let Ok(folder) = fs::canonicalize(folder) else {
            return Vec::new();
        };
        let mut threads = self.threads();
        threads.retain(|it| {
            let found = self.find(*it);
            found.is_ok_and(|it| it.is_some_and(|(_, it)| folder.starts_with(it.origin())))
        });
        threads
    }
}
