//! The skills that the model is offered: the enabled ones of the user, of the administrator and of
//! plugins, and those of a workspace that the operator trusts.

use std::path::Path;
use std::sync::Arc;

use raddle_config::skills::is_enabled;
use raddle_config::{Config, ConfigWriter, State, projects};
use raddle_core::ports::{OfferedSkill, SkillOffer, Skills, TrustError, UndecidedFolder};
use raddle_protocol::SkillScope;

use crate::options::Options;
use crate::services::files::PathAdmission;
use crate::services::skill_roots::SkillRoots;
use crate::services::skills::{self, SkillList};

/// Reads the skills for threads, with the configuration of that moment.
#[derive(Debug)]
pub(crate) struct OfferedSkills {
    options: Options,
    config: Arc<Config>,
    roots: SkillRoots,
}

impl OfferedSkills {
    pub(crate) fn new(options: &Options, config: &Arc<Config>, roots: &SkillRoots) -> Self {
        Self {
            options: options.clone(),
            config: config.clone(),
            roots: roots.clone(),
        }
    }

    fn admission(&self) -> PathAdmission {
        PathAdmission::of_server(&self.options, &self.config).resolved()
    }

    /// Returns the configuration in force.
    fn state(&self) -> Arc<State> {
        let refreshed = self.config.refresh();
        refreshed.unwrap_or_else(|_| self.config.state())
    }

    /// Returns a workspace whose skills are withheld. Its path is the real one: a link could lead
    /// elsewhere later.
    fn undecided(&self, root: &Path) -> UndecidedFolder {
        let real = std::fs::canonicalize(root);
        let root = real.as_deref().unwrap_or(root).display().to_string();
        let key = toml::Value::from(root.as_str());
        let warning = format!(
            "The model does not get the skills of {root}, because that folder is not trusted. To \
             trust it, add `[projects.{key}]` with `trust_level = \"trusted\"` to {}; the next turn \
             offers them. With \"untrusted\" instead, this warning does not appear.",
            self.config.user_file().display()
        );
        UndecidedFolder {
            folder: root,
            warning,
        }
    }
}

impl Skills for OfferedSkills {
    fn offer(&self, cwd: &str) -> SkillOffer {
        if !Path::new(cwd).is_absolute() {
            return SkillOffer::default();
        }
        let (shared, of_plugins) = (self.roots.folders(), self.roots.of_plugins());
        if of_plugins.is_empty() && !skills::have_folders(cwd, &shared) {
            return SkillOffer::default();
        }
        let (config, admission) = (self.state(), self.admission());
        let mut list = SkillList::new(&shared, of_plugins, &admission);
        list.add_folder(cwd);
        let entries = list.entries().into_iter();
        let listed = entries.flat_map(|it| it.skills);
        let enabled = listed.filter(|it| is_enabled(&config, &it.name, &it.path));
        let (of_workspace, mut offered): (Vec<_>, Vec<_>) =
            enabled.partition(|it| it.scope == SkillScope::Repo);
        let folders = projects::folders(Path::new(cwd));
        let mut undecided = None;
        match projects::trust(&config, &folders) {
            Some(true) => offered.extend(of_workspace),
            Some(false) => {}
            None if of_workspace.is_empty() => {}
            None => undecided = folders.last().map(|root| self.undecided(root)),
        }
        offered.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
        let offered = offered.into_iter().map(|it| OfferedSkill {
            is_hidden: admission.is_of_server(Path::new(&it.path)),
            name: it.name,
            description: it.description,
            path: it.path,
        });
        SkillOffer {
            skills: offered.collect(),
            undecided,
        }
    }

    fn text(&self, cwd: &str, skill: &OfferedSkill) -> Option<String> {
        let (shared, admission) = (self.roots.folders(), self.admission());
        skills::text_of(Path::new(&skill.path), cwd, &shared, &admission)
            .or_else(|| self.roots.plugin_text(&skill.path))
    }

    fn decide(&self, folder: &str, is_trusted: bool) -> Result<(), TrustError> {
        // The answer may come from a client on a socket, so it may change no more than such a
        // client.
        let written = projects::decide(&self.config, folder, is_trusted, ConfigWriter::Remote);
        written.map_err(|error| TrustError(error.to_string()))
    }
}
