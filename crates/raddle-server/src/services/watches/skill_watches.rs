//! Watches on the folders of skills, for `skills/changed`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raddle_agent::Threads;
use raddle_protocol::SkillsChangedNotification;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::path_watch::PathWatch;
use super::watch::Watch;
use super::watch_target::WatchTarget;
use super::watcher::PathWatcher;
use crate::services::skill_roots::SkillFolder;
use crate::spans;
use crate::wire_error::WireError;

/// How long changes are collected before clients are notified.
const GATHER: Duration = Duration::from_millis(200);

/// The watches, by their folders. They end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct SkillWatches {
    watches: Mutex<BTreeMap<PathBuf, Watch>>,
}

impl SkillWatches {
    /// Watches these folders, and no others. A folder that does not exist is not watched. All
    /// clients are notified of changes after this has returned.
    pub(crate) async fn set(
        &self,
        folders: &[SkillFolder],
        watcher: &PathWatcher,
        threads: &Threads,
    ) {
        for folder in self.retain(folders) {
            let watch = Watch::new(folder.clone(), watcher);
            let notifier = SkillChangeNotifier {
                path_watch: watch.path_watch(),
                watcher: watcher.clone(),
                threads: threads.clone(),
            };
            if notifier.retarget(false).await {
                spans::spawn(notifier.run());
                self.lock().insert(folder, watch);
            }
        }
    }

    /// Ends the watches on other folders; returns the folders that are not watched yet.
    fn retain(&self, folders: &[SkillFolder]) -> Vec<PathBuf> {
        let mut watches = self.lock();
        watches.retain(|folder, watch| {
            let is_named = folders.iter().any(|it| it.path == *folder);
            is_named && !watch.path_watch().is_ended()
        });
        let unwatched = folders.iter().map(|it| &it.path);
        let unwatched = unwatched.filter(|it| !watches.contains_key(*it));
        unwatched.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that notifies all clients of the changes in a folder of skills.
struct SkillChangeNotifier {
    path_watch: Arc<PathWatch>,
    watcher: PathWatcher,
    threads: Threads,
}

impl SkillChangeNotifier {
    /// Sends notifications, a little later than the changes, until the watch ends or the folder is
    /// gone.
    async fn run(self) {
        loop {
            self.path_watch.when_changed().await;
            sleep(GATHER).await;
            let path_move = self.path_watch.take_moved();
            let mut is_changed = path_move.is_some();
            let is_open = self
                .path_watch
                .send_pending(|paths| is_changed |= !paths.is_empty());
            if !is_open {
                return;
            }
            if is_changed {
                self.threads.announce(SkillsChangedNotification {}.into());
            }
            if let Some(path_move) = path_move
                && !self.retarget(path_move.target_lost).await
            {
                self.watcher.forget(&self.path_watch);
                return self.path_watch.end();
            }
        }
    }

    /// Targets the watch at its folder as it is now; returns false if the folder does not exist, or
    /// cannot be watched.
    async fn retarget(&self, target_lost: bool) -> bool {
        let path = self.path_watch.path.clone();
        let resolve = move || {
            let target = WatchTarget::of(&path)?;
            target.walk()?;
            Ok::<_, WireError>(target)
        };
        let Ok(Ok(target)) = spawn_blocking(resolve).await else {
            return false;
        };
        let watch = &self.path_watch;
        target.exists
            && self
                .watcher
                .set_target(watch, target, target_lost)
                .await
                .is_ok()
    }
}
