//! The times in which tools of all folders run. Folders may lie in each other.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use raddle_workspace::WorkspacePath;

use super::tracked_folder::{Scope, TurnKey};
use crate::mutex::locked;

/// The windows of all tracked folders of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedWindows(Arc<Mutex<Vec<ToolWindow>>>);

/// The time in which a tool runs in a folder.
#[derive(Clone, Debug)]
pub(super) struct ToolWindow {
    pub root: PathBuf,
    /// Number of the tool in its folder; absent for the commands that a turn left running.
    pub tool: Option<u64>,
    pub turn: TurnKey,
    pub scope: Scope,
    pub started: SystemTime,
    /// Absent while it runs.
    pub ended: Option<SystemTime>,
}

impl ToolWindow {
    fn is_of(&self, root: &Path, tool: Option<u64>, turn: &TurnKey) -> bool {
        self.root == root && self.tool == tool && self.turn == *turn
    }

    /// Whether it is of another folder, around this one or in it.
    fn is_related(&self, root: &Path) -> bool {
        self.root != root && (self.root.starts_with(root) || root.starts_with(&self.root))
    }

    /// Whether the tool may change this file.
    fn may_change(&self, path: &Path) -> bool {
        match (path.strip_prefix(&self.root), &self.scope) {
            (Ok(_), Scope::Everything) => true,
            (Ok(path), Scope::Paths(paths)) => {
                WorkspacePath::new(path).is_some_and(|it| paths.contains(&it))
            }
            (Err(_), _) => false,
        }
    }
}

impl SharedWindows {
    pub fn open(&self, window: ToolWindow) {
        locked(&self.0).push(window);
    }

    /// Ends the window of a tool. It is kept while another one, which overlaps it, is open: the look
    /// at the end of that one finds what this tool changed.
    pub fn close(&self, root: &Path, tool: Option<u64>, turn: &TurnKey, ended: SystemTime) {
        self.close_matching(ended, |it| it.is_of(root, tool, turn));
    }

    /// Ends the windows of a folder that is closed.
    pub fn close_all(&self, root: &Path, ended: SystemTime) {
        self.close_matching(ended, |it| it.root == root);
    }

    fn close_matching(&self, ended: SystemTime, is_intended: impl Fn(&ToolWindow) -> bool) {
        let mut windows = locked(&self.0);
        for window in windows.iter_mut().filter(|it| is_intended(it)) {
            window.ended.get_or_insert(ended);
        }
        let open = windows.iter().filter(|it| it.ended.is_none());
        let oldest = open.map(|it| it.started).min();
        windows.retain(|it| match (it.ended, oldest) {
            (None, _) => true,
            (Some(ended), Some(oldest)) => ended >= oldest,
            (Some(_), None) => false,
        });
    }

    /// Returns the turns whose tools in folders around this one, or in it, may have changed a file
    /// at a time for which `was_running` holds.
    pub fn related_authors(
        &self,
        root: &Path,
        path: &WorkspacePath,
        was_running: impl Fn(SystemTime, Option<SystemTime>) -> bool,
    ) -> Vec<TurnKey> {
        let path = root.join(path.as_path());
        let windows = locked(&self.0);
        let related = windows.iter().filter(|it| it.is_related(root));
        let authors =
            related.filter(|it| it.may_change(&path) && was_running(it.started, it.ended));
        authors.map(|it| it.turn.clone()).collect()
    }

    /// Whether a tool runs in a folder around this one, or in it.
    pub fn is_busy_around(&self, root: &Path) -> bool {
        let windows = locked(&self.0);
        let mut running = windows.iter().filter(|it| it.ended.is_none());
        running.any(|it| it.is_related(root))
    }
}
