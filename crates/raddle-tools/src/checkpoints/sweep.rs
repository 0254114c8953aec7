//! Removing old copies of files from the stores of all workspaces.

use std::fs;
use std::path::Path;
use std::time::Duration;

use raddle_workspace::{Error, RetentionLimits, prune_store};

use super::Inner;

/// Name of the file whose time is that of the last sweep.
const SWEPT: &str = "swept";

/// Time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Name of the thread.
const THREAD: &str = "checkpoints";

impl Inner {
    /// Starts a sweep in the background if the last one was a day ago, by any process.
    pub(super) fn sweep_if_due(&self) {
        let marker = self.options.folder.join(SWEPT);
        if !is_due(&marker) {
            return;
        }
        // The folder exists once a store does.
        if fs::write(&marker, b"").is_err() {
            return;
        }
        let stores = self.stores();
        let sweeping = std::thread::Builder::new().name(THREAD.to_owned());
        if let Err(error) = sweeping.spawn(move || sweep(&stores)) {
            tracing::warn!(%error, "old copies of files remain");
        }
    }
}

fn is_due(marker: &Path) -> bool {
    let modified = fs::metadata(marker).and_then(|it| it.modified());
    modified.map_or(true, |at| at.elapsed().is_ok_and(|it| it > INTERVAL))
}

/// Prunes all stores that no process uses now.
fn sweep(stores: &Path) {
    let Ok(entries) = fs::read_dir(stores) else {
        return;
    };
    for store in entries.flatten().map(|it| it.path()) {
        match prune_store(&store, &RetentionLimits::default()) {
            Ok(report) => {
                tracing::debug!(
                    ?store,
                    removed = report.removed.len(),
                    "old snapshots were removed"
                );
            }
            Err(Error::Busy(_)) => {}
            Err(error) => tracing::warn!(?store, %error, "old snapshots remain"),
        }
    }
}
