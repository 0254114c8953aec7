//! The folders whose trust clients are being asked about.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The folders that open questions of this process are about.
#[derive(Clone, Debug, Default)]
pub(crate) struct AskedFolders(Arc<Mutex<BTreeSet<String>>>);

impl AskedFolders {
    /// Reserves a folder, so that no other thread asks about it.
    pub(crate) fn reserve(&self, folder: &str) -> Option<FolderReservation> {
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = folders.insert(folder.to_owned());
        is_new.then(|| FolderReservation {
            folders: self.clone(),
            folder: folder.to_owned(),
        })
    }
}

/// The reservation of a folder. Dropping it lets other threads ask.
pub(crate) struct FolderReservation {
    folders: AskedFolders,
    folder: String,
}

impl Drop for FolderReservation {
    fn drop(&mut self) {
        let folders = self.folders.0.lock();
        let mut folders = folders.unwrap_or_else(PoisonError::into_inner);
        folders.remove(&self.folder);
    }
}
