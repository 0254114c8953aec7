//! A client's handle on one watch.

use std::path::PathBuf;
use std::sync::Arc;

use super::path_watch::PathWatch;
use super::watcher::PathWatcher;

/// One watch. Dropping it ends it, and no notification follows.
#[derive(Debug)]
pub(crate) struct Watch {
    path_watch: Arc<PathWatch>,
    watcher: PathWatcher,
}

impl Watch {
    pub(super) fn new(path: PathBuf, watcher: &PathWatcher) -> Self {
        Self {
            path_watch: Arc::new(PathWatch::new(path)),
            watcher: watcher.clone(),
        }
    }

    pub(super) fn path_watch(&self) -> Arc<PathWatch> {
        self.path_watch.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.path_watch.end();
        self.watcher.forget(&self.path_watch);
    }
}
