//! Watching paths for a client.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use raddle_protocol::FsChangedNotification;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::session::Session;

/// How long changes are gathered before they are told.
const GATHER: Duration = Duration::from_millis(50);

/// How many paths one notification names; when more changed, it names the watched path instead.
const PATHS_MAX: usize = 1000;

/// How often a path that keeps coming and going is aimed at before that is left to its next change.
const AIMS_MAX: usize = 8;

/// One watch. Dropping it ends it, and nothing is told of it after that.
#[derive(Debug)]
pub(crate) struct Watch {
    eye: Arc<Eye>,
}

/// What a watch shares with the task that tells of it.
#[derive(Debug)]
struct Eye {
    path: PathBuf,
    changes: Arc<Changes>,
    /// Gone once the watch has ended. Locked while telling, so that the end waits for that.
    watcher: Mutex<Option<RecommendedWatcher>>,
}

/// What changed and was not told yet. Bounded, so a storm of changes costs no more than its paths.
#[derive(Debug, Default)]
struct Changes {
    seen: Mutex<Seen>,
    some: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    paths: BTreeSet<PathBuf>,
    /// The path itself or a folder above it came or went, so another folder must be looked at.
    moved: bool,
}

impl Watch {
    /// Begins to watch a path. While it does not exist, the nearest folder that does is watched.
    pub(crate) fn begin(
        watch_id: String,
        path: PathBuf,
        session: &Arc<Session>,
    ) -> notify::Result<Self> {
        let changes = Arc::new(Changes::default());
        let (seen, watched) = (changes.clone(), path.clone());
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if let Ok(event) = event {
                seen.add(&watched, event);
            }
        })?;
        let there = path.exists();
        aim(&mut watcher, &path)?;
        let eye = Arc::new(Eye {
            path,
            changes,
            watcher: Mutex::new(Some(watcher)),
        });
        tokio::spawn(tell(watch_id, there, Arc::downgrade(session), eye.clone()));
        Ok(Self { eye })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.eye.watcher() = None;
        self.eye.changes.some.notify_one();
    }
}

impl Eye {
    fn watcher(&self) -> MutexGuard<'_, Option<RecommendedWatcher>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the path again where it is now; says whether it is there.
    fn look_again(&self) -> bool {
        if let Some(watcher) = self.watcher().as_mut()
            && let Err(error) = aim(watcher, &self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "a watched path was lost");
        }
        self.path.exists()
    }
}

impl Changes {
    /// Keeps what the client asked for.
    fn add(&self, watched: &Path, event: Event) {
        let comes_or_goes = match event.kind {
            EventKind::Access(_) => return,
            EventKind::Create(_) | EventKind::Remove(_) => true,
            EventKind::Modify(ModifyKind::Name(_)) => true,
            _ => false,
        };
        // The system's own queue was too short, so anything may have changed.
        let lost = event.need_rescan();
        let above = event.paths.iter().any(|path| watched.starts_with(path));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.moved |= lost || (comes_or_goes && above);
        let changed = event.paths.into_iter();
        seen.paths
            .extend(changed.filter(|path| path.starts_with(watched)));
        if lost || seen.paths.len() > PATHS_MAX {
            seen.paths.clear();
            seen.paths.insert(watched.to_owned());
        }
        if seen.moved || !seen.paths.is_empty() {
            self.some.notify_one();
        }
    }

    fn take(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Points the watcher at the path, or at what is nearest to it. Between looking and pointing the
/// path may come or go, so it is looked at again after.
fn aim(watcher: &mut RecommendedWatcher, path: &Path) -> notify::Result<()> {
    let mut aimed = Ok(());
    for _ in 0..AIMS_MAX {
        let (target, mode) = target(path);
        aimed = watcher.watch(target, mode);
        if self::target(path) == (target, mode) {
            break;
        }
    }
    aimed
}

fn target(path: &Path) -> (&Path, RecursiveMode) {
    if path.is_dir() {
        return (path, RecursiveMode::Recursive);
    }
    // A file is replaced more often than written, so its folder is watched.
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir());
    (folder.unwrap_or(path), RecursiveMode::NonRecursive)
}

/// Tells the client what changed, a little later than it did, until the watch or the client is gone.
async fn tell(watch_id: String, mut there: bool, session: Weak<Session>, eye: Arc<Eye>) {
    loop {
        eye.changes.some.notified().await;
        sleep(GATHER).await;
        let Seen { mut paths, moved } = eye.changes.take();
        if moved {
            let again = eye.clone();
            let now = spawn_blocking(move || again.look_again()).await;
            let before = std::mem::replace(&mut there, now.unwrap_or(false));
            // Whoever made the folders above it too was seen only up there.
            if there != before {
                paths.insert(eye.path.clone());
            }
        }
        let Some(session) = session.upgrade() else {
            return;
        };
        let watcher = eye.watcher();
        if watcher.is_none() {
            return;
        }
        if !paths.is_empty() {
            let watch_id = watch_id.clone();
            let changed_paths = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            session.tell(
                &FsChangedNotification {
                    watch_id,
                    changed_paths,
                }
                .into(),
            );
        }
    }
}
