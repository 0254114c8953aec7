//! The skills that the configuration disables: a `[[skills.config]]` each.
//!
//! The lists of all layers apply. An entry of a stronger layer takes precedence, and in one list
//! the last.

use std::path::Path;

use raddle_protocol::{ConfigEdit, ConfigLayerSource, MergeStrategy};
use serde_json::{Value, json};

use crate::config::{Config, ConfigWriter, State};
use crate::config_error::ConfigWriteError;
use crate::keys::PLUGINS_TABLE;
use crate::layers;

/// Limit: entries of `skills.config` in the user's file; beyond it, the server rejects
/// `skills/config/write` with -32600.
const ENTRIES_MAX: usize = 1000;

/// How often a write is attempted while other processes change the file.
const ATTEMPTS_MAX: usize = 5;

/// Selection of skills in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillSelector {
    /// All skills of this name.
    Name(String),
    /// The skill with this `SKILL.md`.
    Path(String),
}

impl SkillSelector {
    fn key(&self) -> &'static str {
        match self {
            Self::Name(_) => "name",
            Self::Path(_) => "path",
        }
    }

    fn value(&self) -> &str {
        match self {
            Self::Name(value) | Self::Path(value) => value,
        }
    }

    /// Whether an entry of the configuration has this selection.
    fn is_of(&self, entry: &toml::Value) -> bool {
        match self {
            Self::Name(name) => has_name(entry, name),
            Self::Path(path) => has_path(entry, path),
        }
    }

    /// Enables or disables the skills in the user's file. Returns whether they are enabled then, as
    /// far as this selection says.
    pub fn write(
        &self,
        config: &Config,
        enabled: bool,
        writer: ConfigWriter,
    ) -> Result<bool, ConfigWriteError> {
        let mut attempts_left = ATTEMPTS_MAX;
        loop {
            attempts_left -= 1;
            let before = config.refresh().map_err(ConfigWriteError::Unusable)?;
            let edit = self.edit(&before, enabled)?;
            match config.write(&[edit], user_version(&before), None, writer) {
                // Another process changed the file after it was read.
                Err(ConfigWriteError::Rejected {
                    kind: "configVersionConflict",
                    ..
                }) if attempts_left > 0 => {}
                written => {
                    written?;
                    break;
                }
            }
        }
        let now = config.refresh().map_err(ConfigWriteError::Unusable)?;
        Ok(setting(&now, |it| self.is_of(it)).unwrap_or(true))
    }

    /// Returns the change of the user's file.
    fn edit(&self, config: &State, enabled: bool) -> Result<ConfigEdit, ConfigWriteError> {
        let user = user_layer(config).map(|it| entries(&it.table));
        let others = user.into_iter().flatten().filter(|it| !self.is_of(it));
        let mut list: Vec<Value> = others.map(layers::to_json).collect();
        if !enabled || self.is_disabled_otherwise(config) {
            if list.len() >= ENTRIES_MAX {
                return Err(ConfigWriteError::Rejected {
                    kind: "configValidationError",
                    message: format!(
                        "skills.config has {ENTRIES_MAX} entries, the maximum; enable a skill first"
                    ),
                });
            }
            list.push(json!({ (self.key()): self.value(), "enabled": enabled }));
        }
        Ok(ConfigEdit {
            key_path: "skills.config".to_owned(),
            value: match list.is_empty() {
                true => Value::Null,
                false => Value::Array(list),
            },
            merge_strategy: MergeStrategy::Replace,
        })
    }

    /// Whether the skills may be disabled without an entry of this selection in the user's file. An
    /// entry that enables them is needed then.
    fn is_disabled_otherwise(&self, config: &State) -> bool {
        let is_path = matches!(self, Self::Path(_));
        config.layers.each().any(|layer| {
            let is_user = matches!(layer.source, ConfigLayerSource::User(_));
            let mut disabled = entries(&layer.table).iter().filter(|it| !is_enabling(it));
            // The name of the skill at a path is not known here, so each name counts.
            disabled.any(|it| is_path && it.get("name").is_some() || !is_user && self.is_of(it))
        })
    }
}

/// Whether a skill is enabled. A setting of its path takes precedence over one of its name.
pub fn is_enabled(config: &State, name: &str, path: &str) -> bool {
    let by_path = setting(config, |it| has_path(it, path));
    let by_name = || setting(config, |it| has_name(it, name));
    by_path.or_else(by_name).unwrap_or(true)
}

/// Whether two configurations have the same settings of skills, and the same plugins: those have
/// skills, too.
pub fn has_same_settings(first: &State, second: &State) -> bool {
    let entries_of = |config: &State| {
        let all = config.layers.each();
        let all = all.map(|layer| entries(&layer.table).to_vec());
        all.collect::<Vec<Vec<toml::Value>>>()
    };
    let has_same_plugins = first.merged.get(PLUGINS_TABLE) == second.merged.get(PLUGINS_TABLE);
    has_same_plugins && entries_of(first) == entries_of(second)
}

/// Returns the setting of the strongest entry that is selected.
fn setting(config: &State, is_selected: impl Fn(&toml::Value) -> bool) -> Option<bool> {
    let strongest_first = config.layers.each().rev();
    let mut all = strongest_first.flat_map(|layer| entries(&layer.table).iter().rev());
    all.find(|it| is_selected(it)).map(is_enabling)
}

/// Whether an entry enables its skills. An invalid value disables them: it was written to restrict.
fn is_enabling(entry: &toml::Value) -> bool {
    let enabled = entry.get("enabled");
    enabled.is_none_or(|it| it.as_bool() == Some(true))
}

/// Returns the invalid entries of a table, a sentence each.
pub(crate) fn problems(table: &toml::Table) -> Vec<String> {
    let is_text = |entry: &toml::Value, key: &str| entry.get(key).is_some_and(toml::Value::is_str);
    let mut problems = Vec::new();
    for entry in entries(table) {
        if is_text(entry, "name") == is_text(entry, "path") {
            problems.push("each of `skills.config` must have a `name` or a `path`".to_owned());
        }
        if entry.get("enabled").is_some_and(|it| !it.is_bool()) {
            problems.push("`enabled` of `skills.config` must be true or false".to_owned());
        }
    }
    problems
}

fn has_name(entry: &toml::Value, name: &str) -> bool {
    entry.get("name").and_then(toml::Value::as_str) == Some(name)
}

/// Whether an entry names a path, in any spelling of its separators.
fn has_path(entry: &toml::Value, path: &str) -> bool {
    let entry_path = entry.get("path").and_then(toml::Value::as_str);
    entry_path.is_some_and(|it| Path::new(it) == Path::new(path))
}

fn user_layer(config: &State) -> Option<&layers::Layer> {
    let mut all = config.layers.each();
    all.find(|it| matches!(it.source, ConfigLayerSource::User(_)))
}

fn user_version(config: &State) -> Option<&str> {
    user_layer(config).map(|it| it.version.as_str())
}

fn entries(layer: &toml::Table) -> &[toml::Value] {
    let entries = layer.get("skills").and_then(|it| it.get("config"));
    let entries = entries.and_then(toml::Value::as_array);
    entries.map_or(&[], Vec::as_slice)
}
