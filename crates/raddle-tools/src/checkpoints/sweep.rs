//! Removing old copies of files from the stores of all workspaces.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use raddle_workspace::{Error, RetentionLimits, prune_store};

use super::{Inner, stores_in};

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
    match prune_stores(stores, &RetentionLimits::default()) {
        Ok(PruneSummary {
            failed, removed, ..
        }) => {
            for (store, error) in failed {
                tracing::warn!(?store, %error, "old snapshots remain");
            }
            tracing::debug!(removed, "old snapshots were removed");
        }
        Err(error) => tracing::warn!(?stores, %error, "old snapshots remain"),
    }
}

/// Result of pruning the stores of all workspaces.
#[derive(Debug, Default)]
pub struct PruneSummary {
    /// Number of stores that were pruned.
    pub pruned: usize,
    /// Number of stores that were left as they are, because a process uses them.
    pub busy: usize,
    /// Stores that could not be pruned.
    pub failed: Vec<(PathBuf, Error)>,
    /// Number of removed snapshots.
    pub removed: usize,
    /// Bytes of the pruned stores before.
    pub bytes_before: u64,
    /// Bytes of the pruned stores now.
    pub bytes_now: u64,
}

/// Removes copies of files beyond these limits from the stores of all workspaces. `folder` is that
/// of the checkpoints. Blocks on the disk.
pub fn prune_checkpoints(folder: &Path, limits: &RetentionLimits) -> io::Result<PruneSummary> {
    prune_stores(&stores_in(folder), limits)
}

fn prune_stores(stores: &Path, limits: &RetentionLimits) -> io::Result<PruneSummary> {
    let mut summary = PruneSummary::default();
    let entries = match fs::read_dir(stores) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(summary),
        entries => entries?,
    };
    for entry in entries {
        let store = entry?.path();
        match prune_store(&store, limits) {
            Ok(report) => {
                summary.pruned += 1;
                summary.removed += report.removed.len();
                summary.bytes_before += report.bytes_before;
                summary.bytes_now += report.bytes_now;
            }
            Err(Error::Busy(_)) => summary.busy += 1,
            Err(error) => summary.failed.push((store, error)),
        }
    }
    Ok(summary)
}
