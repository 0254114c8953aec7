//! One workspace, whose changes are credited to the turns whose tools ran at that time.
//!
//! A look compares the folder with the last one. Each change is credited to the turns that had a
//! tool running when the kernel stamped it; without one, it is the user's. With tools of several
//! turns, its author is not known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use raddle_core::{ThreadId, TurnId};
use raddle_workspace::{
    Error, NoFaults, PathChange, Snapshot, SnapshotLimits, Workspace, WorkspacePath,
};

use super::change_set::ChangeSet;
use super::named_paths::NamedPaths;
use super::tool_windows::{SharedWindows, ToolWindow};

/// Tolerance of a stamp: the kernel's clock for files is late by up to one tick.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(50);

/// The same for a file system that stores no fractions of a second.
const COARSE_TOLERANCE: Duration = Duration::from_millis(2_500);

/// Time since the last walk within which a command starts without another one.
const RECENT_TIME: Duration = Duration::from_secs(1);

/// The same, in durations of that walk.
const RECENT_WALKS: u32 = 4;

/// Name of the file that is locked while tools run, so that no other process restores files.
const TOOLS: &str = "tools";

pub(super) type TurnKey = (ThreadId, TurnId);

/// Paths that a tool may change.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    /// Any.
    Everything,
    /// These alone.
    Paths(BTreeSet<WorkspacePath>),
}

/// A running tool.
#[derive(Debug)]
struct RunningTool {
    turn: TurnKey,
    started: SystemTime,
    /// Absent while it runs.
    ended: Option<SystemTime>,
}

/// Time and duration of the last walk.
#[derive(Debug, Default)]
struct WalkTime(Option<(Instant, Duration)>);

impl WalkTime {
    /// Whether another walk would take long compared with the time since the last one.
    fn is_recent(&self) -> bool {
        self.0.is_some_and(|(ended, duration)| {
            ended.elapsed() < RECENT_TIME.max(duration * RECENT_WALKS)
        })
    }
}

/// A turn with at least one tool that could write.
#[derive(Debug)]
pub(super) struct TrackedTurn {
    pub changes: ChangeSet,
    /// Whether the whole folder was looked at since the turn began.
    has_walked: bool,
    /// Start of a command that runs on after its call.
    background: Option<SystemTime>,
}

impl TrackedTurn {
    fn is_unchanged(&self) -> bool {
        self.background.is_none() && self.changes.paths().is_empty()
    }
}

pub(super) struct TrackedFolder {
    pub workspace: Workspace,
    pub root: PathBuf,
    named: NamedPaths,
    last: Snapshot,
    is_walked: bool,
    walk: WalkTime,
    running: BTreeMap<u64, RunningTool>,
    next_tool: u64,
    turns: HashMap<TurnKey, TrackedTurn>,
    windows: SharedWindows,
    /// Start of the last look.
    looked_at: SystemTime,
    tools_file: PathBuf,
    /// Locked in common with other processes while tools run.
    tools_lock: Option<File>,
}

impl TrackedFolder {
    /// Opens a folder, and completes a restore that was interrupted there.
    pub fn open(root: &Path, store: &Path, windows: SharedWindows) -> Result<Self, Error> {
        let mut workspace = Workspace::open_waiting(root, store, SnapshotLimits::default())?;
        if let Some(outcome) = workspace.recover(&NoFaults)? {
            tracing::warn!(
                folder = ?root,
                restored = outcome.restored.len(),
                undone = outcome.is_undone,
                "a restore of files that was interrupted is complete now"
            );
        }
        let last = workspace.not_visited();
        workspace.unlock()?;
        Ok(Self {
            workspace,
            root: root.to_owned(),
            named: NamedPaths::load(store),
            last,
            is_walked: false,
            walk: WalkTime::default(),
            running: BTreeMap::new(),
            next_tool: 0,
            turns: HashMap::new(),
            windows,
            looked_at: SystemTime::now(),
            tools_file: store.join(TOOLS),
            tools_lock: None,
        })
    }

    /// Whether no turn is tracked here.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.turns.is_empty()
    }

    /// Whether a tool of any turn runs here, or a command of one.
    fn is_busy(&self) -> bool {
        !self.running.is_empty() || self.turns.values().any(|it| it.background.is_some())
    }

    /// Keeps tools of other processes from starting here until the result is dropped; `None` if a
    /// tool runs here, around this folder or in it.
    pub fn claim_idle(&self) -> io::Result<Option<File>> {
        if self.is_busy() || self.windows.is_busy_around(&self.root) {
            return Ok(None);
        }
        let file = self.open_tools_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn open_tools_file(&self) -> io::Result<File> {
        let options = &mut File::options();
        let options = options.create(true).write(true).mode(0o600);
        options.open(&self.tools_file)
    }

    /// Takes or releases the lock that tells other processes of running tools.
    fn update_tools_lock(&mut self) {
        let is_busy = self.is_busy();
        if !is_busy {
            self.tools_lock = None;
        } else if self.tools_lock.is_none() {
            // The store is locked, so no restore of another process has this lock now.
            let locked = self.open_tools_file().and_then(|file| {
                file.lock_shared()?;
                Ok(file)
            });
            match locked {
                Ok(file) => self.tools_lock = Some(file),
                Err(error) => {
                    tracing::warn!(folder = ?self.root, %error, "other processes may restore files meanwhile");
                }
            }
        }
    }

    pub fn turn(&self, key: &TurnKey) -> Option<&TrackedTurn> {
        self.turns.get(key)
    }

    /// Notes that a tool starts, and returns its number. The state before it is known then.
    pub fn begin(&mut self, key: &TurnKey, scope: &Scope) -> Result<u64, Error> {
        let has_walked = self.turns.get(key).is_some_and(|it| it.has_walked);
        if let Scope::Paths(paths) = scope {
            self.named.add(paths);
        }
        match scope {
            // The changes since then are told apart by their times, but not two changes of one file.
            Scope::Everything if has_walked && self.is_walked && self.walk.is_recent() => {}
            scope => self.look(scope, None)?,
        }
        let turn = self
            .turns
            .entry(key.clone())
            .or_insert_with(|| TrackedTurn {
                changes: ChangeSet::empty(&self.last),
                has_walked: false,
                background: None,
            });
        turn.has_walked |= matches!(scope, Scope::Everything);
        let tool = self.next_tool;
        self.next_tool += 1;
        let started = SystemTime::now();
        self.running.insert(
            tool,
            RunningTool {
                turn: key.clone(),
                started,
                ended: None,
            },
        );
        self.windows.open(ToolWindow {
            root: self.root.clone(),
            tool: Some(tool),
            turn: key.clone(),
            scope: scope.clone(),
            started,
            ended: None,
        });
        self.update_tools_lock();
        Ok(tool)
    }

    /// Sets the changes of a turn, which an earlier handle stored.
    pub fn set_changes(&mut self, key: &TurnKey, changes: ChangeSet) {
        if let Some(turn) = self.turns.get_mut(key) {
            turn.changes = changes;
        }
    }

    /// Notes that a tool ended at this time. `is_background`: a command of the turn runs on.
    pub fn end(
        &mut self,
        tool: u64,
        scope: &Scope,
        ended: SystemTime,
        is_background: bool,
    ) -> Result<(), Error> {
        if let Some(running) = self.running.get_mut(&tool) {
            running.ended = (!is_background).then_some(ended);
        }
        let author = match scope {
            Scope::Everything => None,
            Scope::Paths(_) => self.running.get(&tool).map(|it| it.turn.clone()),
        };
        let looked = self.look(scope, author.as_ref());
        if let Some(ended) = self.running.remove(&tool)
            && let Some(turn) = self.turns.get_mut(&ended.turn)
        {
            // After a look that failed, the next one credits the changes.
            let before = turn.background;
            turn.background = match is_background || looked.is_err() {
                true => before.or(Some(ended.started)),
                false => None,
            };
            match (before, turn.background) {
                (None, Some(started)) => self.windows.open(ToolWindow {
                    root: self.root.clone(),
                    tool: None,
                    turn: ended.turn.clone(),
                    scope: Scope::Everything,
                    started,
                    ended: None,
                }),
                (Some(_), None) => self.close_window(None, &ended.turn),
                (None, None) | (Some(_), Some(_)) => {}
            }
            self.close_window(Some(tool), &ended.turn);
        }
        self.update_tools_lock();
        looked
    }

    fn close_window(&self, tool: Option<u64>, turn: &TurnKey) {
        self.windows
            .close(&self.root, tool, turn, SystemTime::now());
    }

    /// Forgets a tool that did not start.
    pub fn cancel(&mut self, tool: u64) {
        let Some(cancelled) = self.running.remove(&tool) else {
            return;
        };
        self.close_window(Some(tool), &cancelled.turn);
        let is_running = self.running.values().any(|it| it.turn == cancelled.turn);
        let turn = self.turns.get(&cancelled.turn);
        if !is_running && turn.is_some_and(TrackedTurn::is_unchanged) {
            self.turns.remove(&cancelled.turn);
        }
        self.update_tools_lock();
    }

    /// Ends a turn whose processes have ended, and returns its changes.
    pub fn end_turn(&mut self, key: &TurnKey) -> Result<Option<ChangeSet>, Error> {
        let looked = match self.turns.get(key).and_then(|it| it.background) {
            Some(_) => self.look(&Scope::Everything, None),
            None => Ok(()),
        };
        let turn = self.turns.remove(key);
        self.close_window(None, key);
        self.update_tools_lock();
        looked.map(|()| turn.map(|it| it.changes))
    }

    /// Returns the current state of everything that is tracked.
    pub fn look_now(&mut self, paths: &BTreeSet<WorkspacePath>) -> Result<Snapshot, Error> {
        let scope = match self.is_walked {
            true => Scope::Everything,
            false => Scope::Paths(paths.clone()),
        };
        self.look(&scope, None)?;
        Ok(self.last.clone())
    }

    /// Adds to a turn of a dead server what changed since a snapshot, without known author.
    pub fn add_unknown(&mut self, changes: &mut ChangeSet, base: &Snapshot) -> Result<(), Error> {
        self.look(&Scope::Everything, None)?;
        let paths: BTreeSet<_> = base
            .changes(&self.last)
            .into_iter()
            .map(|it| it.path)
            .collect();
        changes.add(base, &self.last, &paths);
        changes.unknown.extend(paths);
        Ok(())
    }

    /// Returns the newest snapshot.
    pub fn last(&self) -> &Snapshot {
        &self.last
    }

    fn look(&mut self, scope: &Scope, author: Option<&TurnKey>) -> Result<(), Error> {
        let began = Instant::now();
        let looked_at = SystemTime::now();
        let now = match scope {
            Scope::Everything => self.workspace.snapshot(&self.named.paths)?,
            Scope::Paths(paths) => self.workspace.update(&self.last, paths)?,
        };
        let mut credits: HashMap<TurnKey, TurnCredit> = HashMap::new();
        for change in self.last.changes(&now) {
            let (authors, is_certain) = match author {
                Some(author) => (vec![author.clone()], true),
                None => self.authors_of(&change, &now),
            };
            for turn in authors {
                let credit = credits.entry(turn).or_default();
                credit.paths.insert(change.path.clone());
                if !is_certain {
                    credit.unknown.insert(change.path.clone());
                }
            }
        }
        self.looked_at = looked_at;
        for (turn, credit) in credits {
            let Some(turn) = self.turns.get_mut(&turn) else {
                continue;
            };
            turn.changes.add(&self.last, &now, &credit.paths);
            turn.changes.unknown.extend(credit.unknown);
            if author.is_some() {
                turn.changes.by_agent.extend(credit.paths);
            }
        }
        if matches!(scope, Scope::Everything) {
            self.is_walked = true;
            self.walk = WalkTime(Some((Instant::now(), began.elapsed())));
        }
        self.last = now;
        Ok(())
    }

    /// Returns the turns that had a tool running here when a path was changed, and whether the
    /// author is certain: one turn, by a clock that agrees with ours, and no tool of another folder.
    fn authors_of(&self, change: &PathChange, now: &Snapshot) -> (Vec<TurnKey>, bool) {
        let at = match change.after {
            Some(_) => now.arrived_at(&change.path, &self.last),
            None => self.folder_changed_at(&change.path),
        };
        // A change happened since the last look, unless the path was not covered then. A time before
        // or after that is of another clock, such as that of a file server.
        let is_possible = |at: &SystemTime| {
            let tolerance = tolerance(*at);
            let is_late = change.before.is_none() || *at + tolerance >= self.looked_at;
            is_late && *at <= SystemTime::now() + tolerance
        };
        let is_believed = at.as_ref().is_none_or(is_possible);
        let at = at.filter(is_possible);
        let was_running = |started: SystemTime, ended: Option<SystemTime>| {
            at.is_none_or(|at| {
                let tolerance = tolerance(at);
                at + tolerance >= started && ended.is_none_or(|it| at <= it + tolerance)
            })
        };
        let running = self.running.values();
        let tools = running.filter(|it| was_running(it.started, it.ended));
        let tools = tools.map(|it| &it.turn);
        let background = self.turns.iter().filter_map(|(key, it)| {
            let started = it.background?;
            was_running(started, None).then_some(key)
        });
        let authors: BTreeSet<&TurnKey> = tools.chain(background).collect();
        let related = self
            .windows
            .related_authors(&self.root, &change.path, was_running);
        let is_certain = is_believed && authors.len() == 1 && related.is_empty();
        (authors.into_iter().cloned().collect(), is_certain)
    }

    /// Returns when an entry of the folder of a path was last added or removed.
    fn folder_changed_at(&self, path: &WorkspacePath) -> Option<SystemTime> {
        let mut folders = self.root.join(path.as_path());
        while folders.pop() && folders.starts_with(&self.root) {
            if let Ok(metadata) = fs::symlink_metadata(&folders) {
                // A program can set the modification time, but not this one.
                let seconds = u64::try_from(metadata.ctime()).ok()?;
                let nanos = u32::try_from(metadata.ctime_nsec()).ok()?;
                return Some(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos));
            }
        }
        None
    }
}

impl Drop for TrackedFolder {
    fn drop(&mut self) {
        self.windows.close_all(&self.root, SystemTime::now());
    }
}

fn tolerance(at: SystemTime) -> Duration {
    let since = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    match since.subsec_nanos() {
        0 => COARSE_TOLERANCE,
        _ => CLOCK_TOLERANCE,
    }
}

#[derive(Default)]
struct TurnCredit {
    paths: BTreeSet<WorkspacePath>,
    unknown: BTreeSet<WorkspacePath>,
}
