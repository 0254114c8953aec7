//! One watch, and what it has seen that was not told yet.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many paths are held, and how many bytes they may have. When more changed, the watched path
/// stands for them all.
const PATHS_MAX: usize = 1000;
const PATHS_BYTES_MAX: usize = 128 << 10;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// One watch.
#[derive(Debug)]
pub(super) struct PathWatch {
    pub(super) number: u64,
    /// The watched path, as the client spells it.
    pub(super) path: PathBuf,
    pending: Mutex<PendingChanges>,
    /// Woken when something was seen.
    some: Notify,
    /// Woken when the watch has ended.
    end: Notify,
}

#[derive(Debug, Default)]
struct PendingChanges {
    paths: BTreeSet<PathBuf>,
    bytes: usize,
    /// Too much changed to say what.
    all: bool,
    path_move: Option<PathMove>,
    ended: bool,
}

/// The path itself or a folder above it came or went, so another folder may have to be looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathMove {
    /// So did the folder that was looked at.
    pub(super) target_lost: bool,
}

impl PathWatch {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            path,
            pending: Mutex::default(),
            some: Notify::new(),
            end: Notify::new(),
        }
    }

    /// Something changed: the watched path, or something below it.
    pub(super) fn add(&self, path: &Path) {
        let mut seen = self.seen();
        if seen.all || seen.paths.contains(path) {
            return;
        }
        seen.bytes += path.as_os_str().len();
        seen.paths.insert(path.to_owned());
        if seen.paths.len() > PATHS_MAX || seen.bytes > PATHS_BYTES_MAX {
            seen.forget();
        }
        drop(seen);
        self.some.notify_one();
    }

    /// Something at or above the watched path came or went.
    pub(super) fn moved(&self, aim_lost: bool) {
        let mut seen = self.seen();
        seen.path_move.get_or_insert_default().target_lost |= aim_lost;
        drop(seen);
        self.some.notify_one();
    }

    /// Something may have changed that was not seen, also where to look.
    pub(super) fn missed(&self, aim_lost: bool) {
        self.seen().forget();
        self.moved(aim_lost);
    }

    /// How many bytes the paths have that are to be told.
    pub(super) fn bytes(&self) -> usize {
        let seen = self.seen();
        if seen.all {
            return self.path.as_os_str().len();
        }
        // Each has quotes around it and a comma behind it.
        seen.bytes + 3 * seen.paths.len()
    }

    pub(super) fn take_moved(&self) -> Option<PathMove> {
        self.seen().path_move.take()
    }

    /// Takes the paths that are to be told, and keeps the watch from ending until `tell` is done with
    /// them. False when it has ended.
    pub(super) fn while_open(&self, tell: impl FnOnce(Vec<String>)) -> bool {
        let mut seen = self.seen();
        if seen.ended {
            return false;
        }
        let paths = std::mem::take(&mut seen.paths);
        seen.bytes = 0;
        if std::mem::take(&mut seen.all) {
            tell(vec![self.path.display().to_string()]);
        } else {
            let told = paths.iter().map(|path| path.display().to_string());
            tell(told.collect());
        }
        true
    }

    /// Ends the watch. When this returns, nothing more is told.
    pub(super) fn end(&self) {
        self.seen().ended = true;
        self.some.notify_one();
        self.end.notify_one();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.seen().ended
    }

    pub(super) async fn when_some(&self) {
        self.some.notified().await;
    }

    pub(super) async fn when_ended(&self) {
        self.end.notified().await;
    }

    fn seen(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingChanges {
    fn forget(&mut self) {
        self.all = true;
        self.bytes = 0;
        self.paths.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(eye: &PathWatch) -> Vec<String> {
        let mut told = Vec::new();
        assert!(eye.while_open(|paths| told = paths));
        told
    }

    #[test]
    fn what_is_held_is_bounded() {
        let eye = PathWatch::new("/w".into());
        for (length, count, told_count) in [(10, 1000, 1000), (10, 1001, 1), (1000, 200, 1)] {
            for number in 0..count {
                eye.add(Path::new(&format!("/w/{number:0>length$}")));
            }
            let paths = told(&eye);
            assert_eq!(paths.len(), told_count);
            assert_eq!(paths == ["/w"], told_count == 1);
            assert_eq!(eye.bytes(), 0, "it was told");
        }
        eye.end();
        assert!(!eye.while_open(|_| panic!("nothing is told after the end")));
    }
}
