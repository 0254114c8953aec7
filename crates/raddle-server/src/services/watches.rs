//! Watches on paths, for clients.
//!
//! A [`PathWatch`] is one watch: it collects changes and notifies its client a little later. The
//! [`PathWatcher`] is the one place that uses the system's interface, for all watches of all
//! connections. Nothing here waits for a client: while one does not read, its changes are merged
//! and stored, in a bounded number.

mod path_watch;
mod skill_watches;
mod watch;
mod watch_target;
mod watcher;

use std::sync::{Arc, Weak};
use std::time::Duration;

use raddle_protocol::FsChangedNotification;
use raddle_rpc::Outgoing;
use tokio::time::sleep;

use self::path_watch::PathWatch;
pub(crate) use self::skill_watches::SkillWatches;
pub(crate) use self::watch::Watch;
use self::watch_target::WatchTarget;
pub(crate) use self::watcher::PathWatcher;
use crate::disk::DiskExecutor;
use crate::services::files::PathAdmission;
use crate::session::Session;
use crate::spans;
use crate::wire_error::WireError;

/// How long changes are collected before the client is notified.
const GATHER: Duration = Duration::from_millis(50);

/// How often to retarget a watch on a path that keeps coming and going, before its next change.
const RETARGETS_MAX: usize = 8;

/// Size of a notification beside its paths: the longest name of a watch and a few member names.
const FRAME_BYTES: usize = 1 << 10;

impl Watch {
    /// Begins to watch a path. While it does not exist, its nearest existing ancestor is watched.
    pub(crate) async fn begin(
        watch_id: String,
        path: std::path::PathBuf,
        admission: PathAdmission,
        session: &Arc<Session>,
        watcher: &PathWatcher,
    ) -> Result<Self, WireError> {
        let watch = Self::new(path, watcher);
        let notifier = ChangeNotifier {
            watch_id,
            admission,
            path_watch: watch.path_watch(),
            watcher: watcher.clone(),
            disk: session.disk.clone(),
            outgoing: session.outgoing.clone(),
            session: Arc::downgrade(session),
        };
        let exists = notifier.retarget(false).await?;
        spans::spawn(notifier.run(exists));
        Ok(watch)
    }
}

/// The task that notifies a client of the changes of a watch.
struct ChangeNotifier {
    watch_id: String,
    /// The rule for the client, checked anew whenever the path may lead elsewhere.
    admission: PathAdmission,
    path_watch: Arc<PathWatch>,
    watcher: PathWatcher,
    disk: DiskExecutor,
    outgoing: Outgoing,
    session: Weak<Session>,
}

impl ChangeNotifier {
    /// Sends notifications, a little later than the changes, until the watch or the client is gone.
    async fn run(self, mut exists: bool) {
        loop {
            self.path_watch.when_changed().await;
            sleep(GATHER).await;
            if self.path_watch.is_ended() || self.outgoing.is_gone() {
                return;
            }
            let mut path_is_closed = false;
            if let Some(path_move) = self.path_watch.take_moved() {
                let retargeted = loop {
                    match self.retarget(path_move.target_lost).await {
                        // No disk permit was free in time. A watch waits for the next one.
                        Err(WireError::Overloaded) if !self.path_watch.is_ended() => {}
                        outcome => break outcome,
                    }
                };
                let exists_now = match retargeted {
                    Ok(exists_now) => exists_now,
                    // The watch ends, and no name from there is sent.
                    Err(WireError::ClosedPath { .. } | WireError::OutsideOfThreads { .. }) => {
                        path_is_closed = true;
                        self.watcher.forget(&self.path_watch);
                        self.path_watch.missed(false);
                        false
                    }
                    Err(error) => {
                        tracing::warn!(
                            connection = self.session.upgrade().map(|it| it.number),
                            path = ?self.path_watch.path,
                            ?error,
                            "a watched path was lost"
                        );
                        false
                    }
                };
                // If the folders above were created too, only the change up there was noticed.
                if std::mem::replace(&mut exists, exists_now) != exists_now {
                    self.path_watch.add(&self.path_watch.path);
                }
            }
            // Changes while the client reads nothing are merged with the rest.
            let hold = tokio::select! {
                hold = self.outgoing.reserve(self.path_watch.bytes() + FRAME_BYTES) => hold,
                () = self.path_watch.when_ended() => return,
            };
            if !self.tell() {
                return;
            }
            drop(hold);
            if path_is_closed {
                return self.path_watch.end();
            }
        }
    }

    /// Sends the pending changes; returns false when the watch or the client is gone.
    fn tell(&self) -> bool {
        let Some(session) = self.session.upgrade() else {
            return false;
        };
        self.path_watch.send_pending(|changed_paths| {
            if !changed_paths.is_empty() {
                let watch_id = self.watch_id.clone();
                let notification = FsChangedNotification {
                    watch_id,
                    changed_paths,
                };
                session.notify(&notification.into());
            }
        })
    }

    /// Targets the watch at its path as it is now; returns whether the path exists. The path may
    /// come or go between resolving and watching, so it is resolved again after.
    async fn retarget(&self, target_lost: bool) -> Result<bool, WireError> {
        let mut target = self.resolve().await?;
        for _ in 0..RETARGETS_MAX {
            self.walk(target.clone()).await?;
            let watched = self
                .watcher
                .set_target(&self.path_watch, target.clone(), target_lost)
                .await;
            let resolved = self.resolve().await?;
            if resolved == target {
                watched?;
                break;
            }
            target = resolved;
        }
        Ok(target.exists)
    }

    async fn walk(&self, target: WatchTarget) -> Result<(), WireError> {
        self.disk.run(&self.outgoing, move || target.walk()).await?
    }

    async fn resolve(&self) -> Result<WatchTarget, WireError> {
        let (path_watch, admission) = (self.path_watch.clone(), self.admission.clone());
        let resolve_target = move || {
            let admission = admission.resolved();
            admission.check(&path_watch.path)?;
            let target = WatchTarget::of(&path_watch.path)?;
            // A link may have been exchanged in between.
            admission.judge_path(&target.real, &path_watch.path)?;
            Ok(target)
        };
        self.disk.run(&self.outgoing, resolve_target).await?
    }
}
