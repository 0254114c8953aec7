//! Pruning of a store without the folder of its workspace.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::restore::Intent;
use crate::store::{OnBusy, Store};
use crate::{Error, PruneReport, RetentionLimits};

/// Removes snapshots of a store that exceed the limits, without the folder of its workspace. A store
/// without snapshots is removed.
///
/// Fails with [`Error::Busy`] while a handle uses the store, and with [`Error::Interrupted`] if a
/// restore must be completed first.
pub fn prune_store(store: &Path, limits: &RetentionLimits) -> Result<PruneReport, Error> {
    // Opening would create it.
    fs::metadata(store).map_err(|it| Error::disk(store, it))?;
    let mut opened = Store::open(store, OnBusy::Fail)?;
    if Intent::exists(store) {
        return Err(Error::Interrupted);
    }
    let mut report = opened.prune(limits, &BTreeSet::new(), SystemTime::now())?;
    if opened.snapshots()?.is_empty() {
        opened.remove()?;
        report.bytes_now = 0;
    }
    Ok(report)
}
