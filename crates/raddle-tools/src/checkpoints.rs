//! Checkpoints: the changes that each turn makes to the files of its workspace.
//!
//! A [`FileCheckpoints`] looks at the workspace before and after each tool that may write, and keeps
//! the two states of every changed path in a store outside the workspace. The diff of a turn, and
//! undo, come from these states, so they include the changes of commands.
//!
//! [`CheckpointedTools`] puts this around all other tools.

mod change_set;
mod copies;
mod json_lines;
mod log;
mod named_paths;
mod restore;
mod sweep;
mod tool_windows;
mod tools;
mod tracked_folder;
mod view;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use data_encoding::HEXLOWER;
use raddle_core::ports::{
    BoxFuture, Checkpoint, CheckpointDiff, CheckpointError, CheckpointRange, Checkpoints,
    FileRestore, RestoreFiles,
};
use raddle_core::{ThreadId, Timestamp};
use raddle_sandbox::FileHolds;
use raddle_workspace::{ContentHash, DiffLimits, SnapshotId};
use sha2::{Digest as _, Sha256};

use self::change_set::ChangeSet;
pub use self::copies::CopyFolders;
use self::log::{HexPath, LogEntry, LogState, Logs};
pub use self::sweep::{PruneSummary, prune_checkpoints};
use self::tool_windows::SharedWindows;
pub use self::tools::CheckpointedTools;
use self::tracked_folder::{Scope, TrackedFolder, TurnKey};
use crate::mutex::locked;

/// Limits of the diff that clients receive during a turn.
const TURN_DIFF: DiffLimits = DiffLimits {
    text_bytes_max: 1 << 20,
    binary_bytes_max: 1 << 16,
    total_bytes_max: 1 << 20,
};

/// Dependencies of the checkpoints.
pub struct CheckpointOptions {
    /// Folder of the stores and logs.
    pub folder: PathBuf,
    /// Folder of the copies of workspaces.
    pub copies: PathBuf,
    /// Files and folders around which no workspace is covered: the home of the user, and the files
    /// of Raddle, which hold keys.
    pub too_wide: Vec<PathBuf>,
    /// Files that approved commands hold.
    pub holds: FileHolds,
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// Whether the operator wants checkpoints. It does not block.
    pub is_enabled: Box<dyn Fn() -> bool + Send + Sync>,
}

/// The checkpoints of all threads of this process. Cheap to clone.
#[derive(Clone)]
pub struct FileCheckpoints {
    inner: Arc<Inner>,
}

struct Inner {
    options: CheckpointOptions,
    logs: Logs,
    folders: Mutex<HashMap<PathBuf, SharedFolder>>,
    /// The tools that run now in any folder, and what ended while they ran.
    windows: SharedWindows,
    /// Threads that were deleted. Nothing is logged of their tools, which may still run.
    deleted: Mutex<HashSet<ThreadId>>,
    /// Log entries of the turns that are tracked now.
    open: Mutex<HashMap<TurnKey, LogEntry>>,
    /// The newest id of a checkpoint of each thread. A turn in a copy and an apply to its origin may
    /// need one at the same time.
    newest_ids: Mutex<HashMap<ThreadId, u64>>,
}

type SharedFolder = Arc<Mutex<Option<TrackedFolder>>>;

impl fmt::Debug for FileCheckpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileCheckpoints")
    }
}

/// A tool that is being tracked.
#[derive(Debug)]
struct TrackedTool {
    key: TurnKey,
    root: PathBuf,
    scope: Scope,
    number: u64,
}

impl FileCheckpoints {
    /// Creates the checkpoints. Nothing is read or written before the first tool.
    pub fn new(options: CheckpointOptions) -> Self {
        let logs = Logs::of(&options.folder);
        let inner = Inner {
            options,
            logs,
            folders: Mutex::default(),
            windows: SharedWindows::default(),
            deleted: Mutex::default(),
            open: Mutex::default(),
            newest_ids: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }
}

/// Returns the folder of the stores of all workspaces, in that of the checkpoints.
fn stores_in(folder: &Path) -> PathBuf {
    folder.join("workspaces")
}

impl Inner {
    /// Whether a folder is too wide for a workspace: copies of everything in it would be stored.
    fn is_too_wide(&self, root: &Path) -> bool {
        let mut wide = self.options.too_wide.iter();
        root.parent().is_none() || wide.any(|it| it.starts_with(root))
    }

    /// Runs an operation on a folder while no other handle uses its store. Blocks on the disk.
    fn with_folder<T, E: From<CheckpointError>>(
        &self,
        root: &Path,
        operation: impl FnOnce(&mut TrackedFolder) -> Result<T, E>,
    ) -> Result<T, E> {
        let shared = {
            let mut folders = locked(&self.folders);
            folders.entry(root.to_owned()).or_default().clone()
        };
        let mut slot = locked(&shared);
        let mut folder = match slot.take() {
            Some(folder) => folder,
            None => {
                let store = self.store_of(root);
                TrackedFolder::open(root, &store, self.windows.clone()).map_err(view::failed)?
            }
        };
        // A handle that fails is closed, which releases the lock of the store too.
        folder.workspace.lock().map_err(view::failed)?;
        let folder = slot.insert(folder);
        let result = operation(folder);
        if folder.is_idle() {
            // It has descriptors and the list of all files. Closing it releases the lock too.
            *slot = None;
            drop(slot);
            self.forget_closed(root, &shared);
        } else {
            folder.workspace.unlock().map_err(view::failed)?;
        }
        result
    }

    /// Removes a closed folder that no other operation waits for.
    fn forget_closed(&self, root: &Path, shared: &SharedFolder) {
        let mut folders = locked(&self.folders);
        // One is in the map, and one is the caller's.
        if Arc::strong_count(shared) <= 2 {
            folders.remove(root);
        }
    }

    fn store_of(&self, root: &Path) -> PathBuf {
        let hash = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let name = HEXLOWER.encode(&hash[..16]);
        self.stores().join(name)
    }

    /// Returns the folder of the stores of all workspaces.
    fn stores(&self) -> PathBuf {
        stores_in(&self.options.folder)
    }

    /// Notes the start of a tool. Blocks on the disk.
    fn begin(
        &self,
        key: TurnKey,
        root: PathBuf,
        scope: Scope,
    ) -> Result<TrackedTool, CheckpointError> {
        let known = locked(&self.open).get(&key).cloned();
        if known.is_none() {
            // The turns that a dead server left open end where this turn begins.
            self.entries(key.0)?;
        }
        let number = self.with_folder(&root, |folder| {
            let is_lost = folder.turn(&key).is_none();
            let number = folder.begin(&key, &scope).map_err(view::failed)?;
            let logged = match known.filter(|it| is_lost && it.folder == root) {
                // The handle with the turn failed and was closed.
                Some(entry) => load(folder, &entry).map(|it| folder.set_changes(&key, it)),
                None => Ok(()),
            };
            let logged = logged.and_then(|()| self.log_turn(folder, &key, LogState::Open));
            logged.inspect_err(|_| folder.cancel(number))?;
            Ok(number)
        })?;
        self.sweep_if_due();
        Ok(TrackedTool {
            key,
            root,
            scope,
            number,
        })
    }

    /// Notes the end of a tool, and returns the diff of its turn.
    fn end(
        &self,
        tool: &TrackedTool,
        ended: SystemTime,
        is_background: bool,
    ) -> Result<Vec<u8>, CheckpointError> {
        self.with_folder(&tool.root, |folder| {
            let noted = folder.end(tool.number, &tool.scope, ended, is_background);
            noted.map_err(view::failed)?;
            let state = match is_background {
                true => LogState::Open,
                false => LogState::Complete,
            };
            self.log_turn(folder, &tool.key, state)?;
            turn_diff(folder, &tool.key)
        })
    }

    /// Returns the diff of a turn that is tracked now.
    fn current_diff(&self, key: &TurnKey) -> Result<Vec<u8>, CheckpointError> {
        let Some(root) = locked(&self.open).get(key).map(|it| it.folder.clone()) else {
            return Ok(Vec::new());
        };
        self.with_folder(&root, |folder| turn_diff(folder, key))
    }

    /// Notes the end of a turn.
    fn end_turn(&self, key: &TurnKey) -> Result<(), CheckpointError> {
        let Some(root) = locked(&self.open).get(key).map(|it| it.folder.clone()) else {
            return Ok(());
        };
        let ended = self.with_folder(&root, |folder| {
            let changes = folder.end_turn(key).map_err(view::failed)?;
            if let Some(changes) = changes {
                self.log_changes(folder, key, &changes, LogState::Complete)?;
            }
            Ok(())
        });
        locked(&self.open).remove(key);
        ended
    }

    fn log_turn(
        &self,
        folder: &mut TrackedFolder,
        key: &TurnKey,
        state: LogState,
    ) -> Result<(), CheckpointError> {
        let Some(changes) = folder.turn(key).map(|it| it.changes.clone()) else {
            return Ok(());
        };
        self.log_changes(folder, key, &changes, state)
    }

    /// Stores the changes of a turn, and appends them to the log if they are other than before.
    fn log_changes(
        &self,
        folder: &mut TrackedFolder,
        key: &TurnKey,
        changes: &ChangeSet,
        state: LogState,
    ) -> Result<(), CheckpointError> {
        let known = locked(&self.open).get(key).cloned();
        let id = match &known {
            Some(known) => known.id,
            None => self.next_id(key.0)?,
        };
        let at = known
            .as_ref()
            .map_or_else(|| (self.options.clock)(), |it| it.at);
        let base = (state == LogState::Open).then(|| folder.last().id().to_string());
        let entry = stored_entry(folder, changes, state)?;
        let entry = LogEntry {
            id,
            turn: Some(key.1.clone()),
            at,
            base,
            ..entry
        };
        if known.as_ref() != Some(&entry) {
            self.append(key.0, &entry)?;
            locked(&self.open).insert(key.clone(), entry);
        }
        Ok(())
    }

    /// Appends to the log of a thread, unless the thread was deleted.
    fn append(&self, thread: ThreadId, entry: &LogEntry) -> Result<(), CheckpointError> {
        let deleted = locked(&self.deleted);
        match deleted.contains(&thread) {
            true => Ok(()),
            false => self.logs.append(thread, entry).map_err(view::disk_failed),
        }
    }

    /// Removes the log of a deleted thread.
    fn forget(&self, thread: ThreadId) -> Result<(), CheckpointError> {
        let mut deleted = locked(&self.deleted);
        deleted.insert(thread);
        locked(&self.newest_ids).remove(&thread);
        self.logs.remove(thread).map_err(view::disk_failed)?;
        self.copies().leave(thread)
    }

    fn next_id(&self, thread: ThreadId) -> Result<u64, CheckpointError> {
        let mut newest_ids = locked(&self.newest_ids);
        let known = newest_ids.get(&thread).copied();
        let entries = self.logs.read(thread).map_err(view::disk_failed)?;
        let logged = entries.iter().map(|it| it.id).max();
        let id = known.max(logged).unwrap_or_default() + 1;
        newest_ids.insert(thread, id);
        Ok(id)
    }

    /// Returns the log of a thread. What a dead server left open is completed first.
    fn entries(&self, thread: ThreadId) -> Result<Vec<LogEntry>, CheckpointError> {
        let mut entries = self.logs.read(thread).map_err(view::disk_failed)?;
        for entry in &mut entries {
            if entry.state == LogState::Open && !self.is_open(thread, entry) {
                self.complete(thread, entry)?;
            }
        }
        Ok(entries)
    }

    /// Whether the turn of a checkpoint is tracked now.
    fn is_open(&self, thread: ThreadId, entry: &LogEntry) -> bool {
        let turn = entry.turn.clone();
        turn.is_some_and(|turn| locked(&self.open).contains_key(&(thread, turn)))
    }

    fn complete(&self, thread: ThreadId, entry: &mut LogEntry) -> Result<(), CheckpointError> {
        let completed = self.with_folder(&entry.folder.clone(), |folder| {
            // The turn may have ended, or begun, since the log was read.
            let newest = self.logs.read(thread).map_err(view::disk_failed)?;
            let newest = newest.into_iter().find(|it| it.id == entry.id);
            if let Some(newest) = newest
                && (newest.state != LogState::Open || self.is_open(thread, &newest))
            {
                return Ok((newest, false));
            }
            if entry.turn.is_none() {
                return Ok((restore::completed(folder, entry.clone())?, true));
            }
            let mut changes = load(folder, entry)?;
            let base = entry.base.as_deref().and_then(snapshot_id);
            let base = base.map(|it| folder.workspace.load(it)).transpose();
            if let Ok(Some(base)) = base {
                folder
                    .add_unknown(&mut changes, &base)
                    .map_err(view::failed)?;
            }
            let stored = stored_entry(folder, &changes, LogState::Interrupted)?;
            let stored = LogEntry {
                id: entry.id,
                turn: entry.turn.clone(),
                restored: entry.restored,
                at: entry.at,
                ..stored
            };
            Ok((stored, true))
        });
        match completed {
            Ok((completed, is_new)) => {
                if is_new {
                    self.append(thread, &completed)?;
                }
                *entry = completed;
                Ok(())
            }
            // The list must stay readable after the folder or its snapshots are gone.
            Err(CheckpointError::Expired | CheckpointError::Failed(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn turn_diff(folder: &mut TrackedFolder, key: &TurnKey) -> Result<Vec<u8>, CheckpointError> {
    let Some(turn) = folder.turn(key) else {
        return Ok(Vec::new());
    };
    let (before, after) = (&turn.changes.before, &turn.changes.after);
    let diff = folder.workspace.diff_within(before, after, &TURN_DIFF);
    Ok(diff.map_err(view::failed)?.unified())
}

/// Stores the two states of a change set, and returns an entry without identity.
fn stored_entry(
    folder: &mut TrackedFolder,
    changes: &ChangeSet,
    state: LogState,
) -> Result<LogEntry, CheckpointError> {
    folder
        .workspace
        .keep(&changes.before)
        .map_err(view::failed)?;
    folder
        .workspace
        .keep(&changes.after)
        .map_err(view::failed)?;
    let paths = changes.paths();
    let listed = |it: &BTreeSet<_>| it.intersection(&paths).map(HexPath::new).collect();
    Ok(LogEntry {
        id: 0,
        turn: None,
        restored: None,
        folder: folder.root.clone(),
        at: Timestamp::default(),
        before: changes.before.id().to_string(),
        after: changes.after.id().to_string(),
        files: paths.len() as u64,
        state,
        is_applied: false,
        base: None,
        by_agent: listed(&changes.by_agent),
        unknown: listed(&changes.unknown),
        gaps: view::logged_gaps(folder.last().gaps()),
    })
}

/// Reads the changes of a checkpoint.
fn load(folder: &TrackedFolder, entry: &LogEntry) -> Result<ChangeSet, CheckpointError> {
    let snapshot = |id: &str| {
        let id = snapshot_id(id).ok_or(CheckpointError::Expired)?;
        folder.workspace.load(id).map_err(view::failed)
    };
    let paths = |it: &[HexPath]| it.iter().filter_map(HexPath::parse).collect();
    Ok(ChangeSet {
        before: snapshot(&entry.before)?,
        after: snapshot(&entry.after)?,
        by_agent: paths(&entry.by_agent),
        unknown: paths(&entry.unknown),
    })
}

fn snapshot_id(text: &str) -> Option<SnapshotId> {
    ContentHash::parse(text).map(SnapshotId)
}

impl FileCheckpoints {
    /// Runs an operation that may block on the disk.
    fn blocking<T: Send + 'static, E: From<CheckpointError> + Send + 'static>(
        &self,
        operation: impl FnOnce(&Inner) -> Result<T, E> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, E>> {
        let inner = self.inner.clone();
        let span = tracing::Span::current();
        Box::pin(async move {
            let work = move || span.in_scope(|| operation(&inner));
            let done = tokio::task::spawn_blocking(work).await;
            done.unwrap_or_else(|error| Err(CheckpointError::Failed(error.to_string()).into()))
        })
    }
}

impl Checkpoints for FileCheckpoints {
    fn list(&self, thread: ThreadId) -> BoxFuture<'_, Result<Vec<Checkpoint>, CheckpointError>> {
        self.blocking(move |inner| {
            let entries = inner.entries(thread)?;
            // Most commands change nothing.
            let entries = entries.iter().filter(|it| it.has_changes());
            Ok(entries.map(|it| view::checkpoint(inner, it)).collect())
        })
    }

    fn preview(
        &self,
        thread: ThreadId,
        request: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>> {
        self.blocking(move |inner| restore::preview(inner, thread, &request))
    }

    fn restore(
        &self,
        thread: ThreadId,
        request: RestoreFiles,
    ) -> BoxFuture<'_, Result<FileRestore, CheckpointError>> {
        self.blocking(move |inner| restore::restore(inner, thread, &request))
    }

    fn diff(
        &self,
        thread: ThreadId,
        range: CheckpointRange,
    ) -> BoxFuture<'_, Result<CheckpointDiff, CheckpointError>> {
        self.blocking(move |inner| view::diff(inner, thread, &range))
    }

    fn forget(&self, thread: ThreadId) -> BoxFuture<'_, Result<(), CheckpointError>> {
        self.blocking(move |inner| inner.forget(thread))
    }
}

/// Removes the checkpoints of a thread that was deleted without a server. Its copy of the workspace
/// stays.
pub fn remove_checkpoints(folders: &CopyFolders, thread: ThreadId) -> std::io::Result<()> {
    Logs::of(&folders.checkpoints).remove(thread)?;
    folders.leave(thread).map_err(std::io::Error::other)
}
