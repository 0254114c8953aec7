//! Folders of skills that apply in every workspace: those of the user and of the administrator, and
//! those that clients add until the server ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_config::Paths;
use raddle_protocol::SkillScope;

/// A folder of skills.
#[derive(Clone, Debug)]
pub(crate) struct SkillFolder {
    pub(crate) path: PathBuf,
    pub(crate) scope: SkillScope,
}

/// The folders. Cheap to clone. Clients that may only read do not see their skills.
#[derive(Clone, Debug)]
pub(crate) struct SkillRoots {
    fixed: Vec<SkillFolder>,
    added: Arc<Mutex<Vec<PathBuf>>>,
}

impl SkillRoots {
    pub(crate) fn new(paths: &Paths) -> Self {
        let user = std::iter::once(&paths.skills).chain(&paths.shared_skills);
        let mut fixed: Vec<SkillFolder> = user.cloned().map(of_user).collect();
        fixed.push(SkillFolder {
            path: paths.admin_skills(),
            scope: SkillScope::Admin,
        });
        Self {
            fixed,
            added: Arc::default(),
        }
    }

    /// Replaces the folders that clients add; returns whether they changed.
    pub(crate) fn set(&self, roots: Vec<PathBuf>) -> bool {
        let mut current = self.lock();
        let is_changed = *current != roots;
        *current = roots;
        is_changed
    }

    /// Returns the folders.
    pub(crate) fn folders(&self) -> Vec<SkillFolder> {
        let added = self.lock().clone().into_iter().map(of_user);
        let mut folders = self.fixed.clone();
        folders.extend(added);
        folders
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_user(path: PathBuf) -> SkillFolder {
    SkillFolder {
        path,
        scope: SkillScope::User,
    }
}
