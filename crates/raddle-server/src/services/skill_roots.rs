//! Skills that apply in every workspace: those in folders of the user and of the administrator, those
//! in folders that clients add until the server ends, and those of plugins.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use raddle_config::Paths;
use raddle_core::ports::{PluginSkill, Plugins};
use raddle_protocol::SkillScope;

/// A folder of skills.
#[derive(Clone, Debug)]
pub(crate) struct SkillFolder {
    pub(crate) path: PathBuf,
    pub(crate) scope: SkillScope,
}

/// The folders, and the plugins. Cheap to clone. Clients that may only read do not see their skills.
#[derive(Clone, Debug)]
pub(crate) struct SkillRoots {
    fixed: Vec<SkillFolder>,
    added: Arc<Mutex<Vec<PathBuf>>>,
    /// Set once the agent exists, which is built with this value.
    plugins: Arc<OnceLock<Arc<dyn Plugins>>>,
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
            plugins: Arc::default(),
        }
    }

    /// Adds the skills of these plugins.
    pub(crate) fn set_plugins(&self, plugins: Arc<dyn Plugins>) {
        let _ = self.plugins.set(plugins);
    }

    /// Returns the skills of plugins. Blocks on the disk.
    pub(crate) fn of_plugins(&self) -> Vec<PluginSkill> {
        self.plugins.get().map(|it| it.skills()).unwrap_or_default()
    }

    /// Reads the file of a plugin's skill. Blocks on the disk.
    pub(crate) fn plugin_text(&self, path: &str) -> Option<String> {
        self.plugins.get()?.skill_text(path)
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
