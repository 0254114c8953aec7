//! Folders of skills that clients add until the server ends.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The added folders. Clients that may only read do not see their skills.
#[derive(Debug, Default)]
pub(crate) struct SkillRoots {
    roots: Mutex<Vec<PathBuf>>,
}

impl SkillRoots {
    /// Replaces the folders; returns whether they changed.
    pub(crate) fn set(&self, roots: Vec<PathBuf>) -> bool {
        let mut current = self.lock();
        let is_changed = *current != roots;
        *current = roots;
        is_changed
    }

    /// Returns the folders.
    pub(crate) fn get(&self) -> Vec<PathBuf> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
