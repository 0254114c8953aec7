//! The skills that the configuration disables: a `[[skills.config]]` each.

use raddle_protocol::{ConfigEdit, MergeStrategy};
use serde_json::{Value, json};

use crate::config::State;
use crate::layers;

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
        let value = entry.get(self.key()).and_then(toml::Value::as_str);
        value == Some(self.value())
    }

    /// Returns the setting of the skills that this selects, if the configuration has one.
    fn setting(&self, config: &State) -> Option<bool> {
        let mut newest_first = entries(config).iter().rev();
        let entry = newest_first.find(|it| self.is_of(it))?;
        entry.get("enabled")?.as_bool()
    }

    /// Whether the skills that this selects are enabled, as far as this selection says.
    pub fn is_enabled(&self, config: &State) -> bool {
        self.setting(config).unwrap_or(true)
    }

    /// Returns the change of the user's file that enables or disables the skills.
    pub fn edit(&self, config: &State, enabled: bool) -> ConfigEdit {
        let others = entries(config).iter().filter(|it| !self.is_of(it));
        let mut list: Vec<Value> = others.map(layers::to_json).collect();
        if !enabled {
            list.push(json!({ (self.key()): self.value(), "enabled": false }));
        }
        ConfigEdit {
            key_path: "skills.config".to_owned(),
            value: match list.is_empty() {
                true => Value::Null,
                false => Value::Array(list),
            },
            merge_strategy: MergeStrategy::Replace,
        }
    }
}

/// Whether a skill is enabled. A setting of its path takes precedence over one of its name.
pub fn is_enabled(config: &State, name: &str, path: &str) -> bool {
    let by_path = SkillSelector::Path(path.to_owned()).setting(config);
    let by_name = || SkillSelector::Name(name.to_owned()).setting(config);
    by_path.or_else(by_name).unwrap_or(true)
}

fn entries(config: &State) -> &[toml::Value] {
    let entries = config.value("skills").and_then(|it| it.get("config"));
    let entries = entries.and_then(toml::Value::as_array);
    entries.map_or(&[], Vec::as_slice)
}
