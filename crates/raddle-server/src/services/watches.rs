//! Watching paths for clients.
//!
//! An [`Eye`] is one watch: it gathers what changed and tells its client a little later. The
//! [`Lookout`] is the one place that asks the system, for all eyes of all connections. Nothing here
//! waits for a client: while one does not read, its changes are merged and held, a bounded number.

mod path_watch;
mod watch_target;
mod watcher;

use std::sync::{Arc, Weak};
use std::time::Duration;

use raddle_protocol::FsChangedNotification;
use raddle_rpc::Outgoing;
use tokio::time::sleep;

use self::path_watch::PathWatch;
use self::watch_target::WatchTarget;
pub(crate) use self::watcher::PathWatcher;
use crate::disk::DiskExecutor;
use crate::services::files::PathAdmission;
use crate::session::Session;
use crate::wire_error::WireError;

/// How long changes are gathered before they are told.
const GATHER: Duration = Duration::from_millis(50);

/// How often a path that keeps coming and going is aimed at before that is left to its next change.
const RETARGETS_MAX: usize = 8;

/// What a notification needs beside its paths: the longest name of a watch and a few names of ours.
const FRAME_BYTES: usize = 1 << 10;

/// One watch. Dropping it ends it, and nothing is told of it after that.
#[derive(Debug)]
pub(crate) struct Watch {
    path_watch: Arc<PathWatch>,
    watcher: PathWatcher,
}

impl Watch {
    /// Begins to watch a path. While it does not exist, the nearest folder that does is watched.
    pub(crate) async fn begin(
        watch_id: String,
        path: std::path::PathBuf,
        admission: PathAdmission,
        session: &Arc<Session>,
        lookout: &PathWatcher,
    ) -> Result<Self, WireError> {
        let watch = Self {
            path_watch: Arc::new(PathWatch::new(path)),
            watcher: lookout.clone(),
        };
        let teller = ChangeNotifier {
            watch_id,
            admission,
            path_watch: watch.path_watch.clone(),
            watcher: lookout.clone(),
            disk: session.disk.clone(),
            outgoing: session.outgoing.clone(),
            session: Arc::downgrade(session),
        };
        let there = teller.aim(false).await?;
        tokio::spawn(teller.run(there));
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.path_watch.end();
        self.watcher.forget(&self.path_watch);
    }
}

/// The task that tells a client what an eye has seen.
struct ChangeNotifier {
    watch_id: String,
    /// The rule for the client, asked anew whenever the path may lead elsewhere.
    admission: PathAdmission,
    path_watch: Arc<PathWatch>,
    watcher: PathWatcher,
    disk: DiskExecutor,
    outgoing: Outgoing,
    session: Weak<Session>,
}

impl ChangeNotifier {
    /// Tells, a little later than it happens, until the watch or the client is gone.
    async fn run(self, mut there: bool) {
        loop {
            self.path_watch.when_some().await;
            sleep(GATHER).await;
            if self.path_watch.is_ended() || self.outgoing.is_gone() {
                return;
            }
            let mut is_closed = false;
            if let Some(moved) = self.path_watch.take_moved() {
                let aimed = loop {
                    match self.aim(moved.target_lost).await {
                        // The disk's turn did not come in time. A watch waits for the next one.
                        Err(WireError::Overloaded) if !self.path_watch.is_ended() => {}
                        aimed => break aimed,
                    }
                };
                let now = match aimed {
                    Ok(now) => now,
                    // The watch ends, and no name from there is told.
                    Err(WireError::ClosedPath { .. } | WireError::OutsideOfThreads { .. }) => {
                        is_closed = true;
                        self.watcher.forget(&self.path_watch);
                        self.path_watch.missed(false);
                        false
                    }
                    Err(error) => {
                        tracing::warn!(path = %self.path_watch.path.display(), ?error, "a watched path was lost");
                        false
                    }
                };
                // Whoever made the folders above it too was seen only up there.
                if std::mem::replace(&mut there, now) != now {
                    self.path_watch.add(&self.path_watch.path);
                }
            }
            // What changes while the client reads nothing is merged with the rest.
            let hold = tokio::select! {
                hold = self.outgoing.reserve(self.path_watch.bytes() + FRAME_BYTES) => hold,
                () = self.path_watch.when_ended() => return,
            };
            if !self.tell() {
                return;
            }
            drop(hold);
            if is_closed {
                return self.path_watch.end();
            }
        }
    }

    /// Tells what there is; false when there is nobody to tell any more.
    fn tell(&self) -> bool {
        let Some(session) = self.session.upgrade() else {
            return false;
        };
        self.path_watch.while_open(|changed_paths| {
            if !changed_paths.is_empty() {
                let watch_id = self.watch_id.clone();
                let told = FsChangedNotification {
                    watch_id,
                    changed_paths,
                };
                session.tell(&told.into());
            }
        })
    }

    /// Aims the eye at its path as it is now; says whether the path is there. Between looking and
    /// aiming it may come or go, so it is looked at again after.
    async fn aim(&self, lost: bool) -> Result<bool, WireError> {
        let mut sight = self.look().await?;
        for _ in 0..RETARGETS_MAX {
            self.walk(sight.clone()).await?;
            let aimed = self
                .watcher
                .aim(&self.path_watch, sight.clone(), lost)
                .await;
            let now = self.look().await?;
            if now == sight {
                aimed?;
                break;
            }
            sight = now;
        }
        Ok(sight.there)
    }

    async fn walk(&self, sight: WatchTarget) -> Result<(), WireError> {
        self.disk.run(&self.outgoing, move || sight.walk()).await?
    }

    async fn look(&self) -> Result<WatchTarget, WireError> {
        let (eye, admission) = (self.path_watch.clone(), self.admission.clone());
        let look = move || {
            let admission = admission.resolved();
            admission.check(&eye.path)?;
            let sight = WatchTarget::of(&eye.path)?;
            // A link may have been exchanged in between.
            admission.judge_path(&sight.real, &eye.path)?;
            Ok(sight)
        };
        self.disk.run(&self.outgoing, look).await?
    }
}
