//! One watch, and its changes that were not sent yet.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Limit: changed paths of a watch that are not sent yet, with at most 128 KiB; beyond it, one
/// change of the watched path replaces them.
///
/// Limits of the stored paths: their number, and their bytes. Beyond them, the watched path stands
/// for all changes.
const PATHS_MAX: usize = 1000;
const PATHS_BYTES_MAX: usize = 128 << 10;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
pub(super) struct PathWatch {
    pub(super) number: u64,
    /// The watched path, as the client spells it.
    pub(super) path: PathBuf,
    pending: Mutex<PendingChanges>,
    /// Notified of a change.
    changed: Notify,
    /// Notified of the end of the watch.
    ended: Notify,
}

#[derive(Debug, Default)]
struct PendingChanges {
    paths: BTreeSet<PathBuf>,
    bytes: usize,
    /// Whether there are too many changes to name their paths.
    all_changed: bool,
    path_move: Option<PathMove>,
    ended: bool,
}

/// A move: the path itself or a folder above it came or went, so the watch may need another target.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathMove {
    /// Whether the target folder moved too.
    pub(super) target_lost: bool,
}

impl PathWatch {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            path,
            pending: Mutex::default(),
            changed: Notify::new(),
            ended: Notify::new(),
        }
    }

    /// Adds a change of the watched path, or of a path below it.
    pub(super) fn add(&self, path: &Path) {
        let mut pending = self.pending();
        if pending.all_changed || pending.paths.contains(path) {
            return;
        }
        pending.bytes += path.as_os_str().len();
        pending.paths.insert(path.to_owned());
        if pending.paths.len() > PATHS_MAX || pending.bytes > PATHS_BYTES_MAX {
            pending.collapse();
        }
        drop(pending);
        self.changed.notify_one();
    }

    /// Notes that the watched path or a folder above it came or went.
    pub(super) fn moved(&self, target_lost: bool) {
        let mut pending = self.pending();
        pending.path_move.get_or_insert_default().target_lost |= target_lost;
        drop(pending);
        self.changed.notify_one();
    }

    /// Notes that changes may have been missed, also a move.
    pub(super) fn missed(&self, target_lost: bool) {
        self.pending().collapse();
        self.moved(target_lost);
    }

    /// Returns the size in bytes of the paths to send.
    pub(super) fn bytes(&self) -> usize {
        let pending = self.pending();
        if pending.all_changed {
            return self.path.as_os_str().len();
        }
        // Each has quotes around it and a comma after it.
        pending.bytes + 3 * pending.paths.len()
    }

    pub(super) fn take_moved(&self) -> Option<PathMove> {
        self.pending().path_move.take()
    }

    /// Takes the paths to send, and keeps the watch from ending until `send` is done with them.
    /// Returns false when it has ended.
    pub(super) fn send_pending(&self, send: impl FnOnce(Vec<String>)) -> bool {
        let mut pending = self.pending();
        if pending.ended {
            return false;
        }
        let paths = std::mem::take(&mut pending.paths);
        pending.bytes = 0;
        if std::mem::take(&mut pending.all_changed) {
            send(vec![self.path.display().to_string()]);
        } else {
            let names = paths.iter().map(|path| path.display().to_string());
            send(names.collect());
        }
        true
    }

    /// Ends the watch. When this returns, no notification follows.
    pub(super) fn end(&self) {
        self.pending().ended = true;
        self.changed.notify_one();
        self.ended.notify_one();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.pending().ended
    }

    pub(super) async fn when_changed(&self) {
        self.changed.notified().await;
    }

    pub(super) async fn when_ended(&self) {
        self.ended.notified().await;
    }

    fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingChanges {
    fn collapse(&mut self) {
        self.all_changed = true;
        self.bytes = 0;
        self.paths.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending_paths(watch: &PathWatch) -> Vec<String> {
        let mut sent = Vec::new();
        assert!(watch.send_pending(|paths| sent = paths));
        sent
    }

    #[test]
    fn pending_changes_are_bounded() {
        let watch = PathWatch::new("/w".into());
        for (length, count, expected_count) in [(10, 1000, 1000), (10, 1001, 1), (1000, 200, 1)] {
            for number in 0..count {
                watch.add(Path::new(&format!("/w/{number:0>length$}")));
            }
            let paths = pending_paths(&watch);
            assert_eq!(paths.len(), expected_count);
            assert_eq!(paths == ["/w"], expected_count == 1);
            assert_eq!(watch.bytes(), 0, "it was told");
        }
        watch.end();
        assert!(!watch.send_pending(|_| panic!("nothing is told after the end")));
    }
}
