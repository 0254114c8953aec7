//! The configuration without a server, for the command line.

mod mcp;
mod plugins;

use std::path::Path;
use std::sync::Arc;

use raddle_protocol::{ConfigEdit, ConfigLayerSource, MergeStrategy, WriteStatus};

use crate::config::{Config, ConfigWriter, State, check_table};
use crate::config_error::{ConfigError, ConfigWriteError, KeyError};
use crate::hooks::{self, Hook, HookSet};
use crate::layers::Layer;
use crate::models::{self, ModelsByProvider};
use crate::overrides::{Override, value_of};
use crate::paths::Paths;
use crate::providers::{self, Preset, Provider, ProviderChoice, ProviderError};
use crate::redaction::without_secrets;
use crate::vendors::OfferedModel;
use crate::{keys, layers};

/// The configuration of a home, as a server would load it.
#[derive(Debug)]
pub struct Configuration {
    config: Config,
    overrides: Vec<Override>,
}

/// An effective value. Values that may be secrets are redacted.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigValue {
    /// Its key, in TOML syntax.
    pub key: String,
    /// The value, redacted if it may be a secret.
    pub value: toml::Value,
    /// Origin of the value: a file, `-c`, or the name of an environment variable.
    pub origin: String,
}

/// A model that threads can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigModel {
    /// Its provider; none where none is configured.
    pub provider: Option<String>,
    /// Its name at the provider.
    pub model: String,
    /// The value of `model` that names both; none if `model_provider` must be set as well.
    pub model_setting: Option<String>,
    /// Its name for people.
    pub name: String,
    /// A sentence that describes it.
    pub description: String,
}

/// Result of a write to the user's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenValue {
    /// The file that was written.
    pub file: String,
    /// Origin of a stronger value that overrides it.
    pub overridden: Option<String>,
    /// A warning about the key.
    pub warning: Option<String>,
}

impl Configuration {
    /// Loads the configuration. Overrides are in the order of their strength, the strongest last.
    pub fn open(paths: &Paths, overrides: Vec<Override>) -> Result<Self, ConfigError> {
        let config = Config::open(paths, &overrides)?;
        Ok(Self { config, overrides })
    }

    /// Returns the user's file, which may not exist.
    pub fn user_file(&self) -> &Path {
        &self.config.user
    }

    /// Returns the administrator's file, which may not exist.
    pub fn system_file(&self) -> &Path {
        &self.config.system
    }

    /// Returns all effective values.
    pub fn values(&self) -> Vec<ConfigValue> {
        let state = self.config.state();
        let redacted = without_secrets(&state.merged);
        let mut values = Vec::new();
        layers::visit_leaves(&redacted, &mut Vec::new(), &mut |path| {
            if let Some(value) = layers::get(&redacted, path) {
                values.push(ConfigValue {
                    key: keys::dotted(path),
                    value: value.clone(),
                    origin: self.origin(path),
                });
            }
        });
        values
    }

    /// Returns the value of a key, which may be a table; none if it is not set.
    pub fn get(&self, key: &str) -> Result<Option<toml::Value>, KeyError> {
        let path = layers::named_key_path(key)?;
        let redacted = without_secrets(&self.config.state().merged);
        Ok(layers::get(&redacted, &path).cloned())
    }

    /// Returns a description of the default of a key, for people; none if the key is unknown.
    pub fn default_of(&self, key: &str) -> Option<&'static str> {
        keys::known(&layers::key_path(key).ok()?).map(|it| it.default_value)
    }

    /// Returns a warning about the key itself, if it is unknown.
    pub fn key_warning(&self, key: &str) -> Option<String> {
        let path = layers::key_path(key).ok()?;
        keys::unknown_key_warning(&path)
    }

    /// Writes a value to the user's file, where comments and order stay. Text that is not TOML is a
    /// plain string.
    pub fn set(&self, key: &str, value: &str) -> Result<WrittenValue, ConfigWriteError> {
        self.write(key, layers::to_json(&value_of(value)))
    }

    /// Whether the user's own file sets a key.
    pub fn is_in_user_file(&self, key: &str) -> Result<bool, KeyError> {
        let path = layers::named_key_path(key)?;
        let state = self.config.state();
        let is_user = |it: &&Layer| matches!(it.source, ConfigLayerSource::User(_));
        let user = state.layers.each().find(is_user);
        Ok(user.is_some_and(|it| layers::get(&it.table, &path).is_some()))
    }

    /// Removes a key from the user's file.
    pub fn unset(&self, key: &str) -> Result<WrittenValue, ConfigWriteError> {
        self.write(key, serde_json::Value::Null)
    }

    fn write(&self, key: &str, value: serde_json::Value) -> Result<WrittenValue, ConfigWriteError> {
        let path = layers::named_key_path(key).map_err(|error| ConfigWriteError::Rejected {
            kind: "configValidationError",
            message: error.to_string(),
        })?;
        self.write_edits(&path, &[replacement(key, value)])
    }

    /// Writes several values at once; the result is about the one with this path.
    fn write_edits(
        &self,
        path: &[String],
        edits: &[ConfigEdit],
    ) -> Result<WrittenValue, ConfigWriteError> {
        let written = self.config.write(edits, None, None, ConfigWriter::Local)?;
        let is_overridden = written.status == WriteStatus::OkOverridden;
        Ok(WrittenValue {
            file: written.file_path,
            overridden: is_overridden.then(|| self.origin(path)),
            warning: keys::unknown_key_warning(path),
        })
    }

    /// Returns all hooks.
    pub fn hooks(&self) -> HookSet {
        HookSet::read(&self.config.state())
    }

    /// Stores in the user's file that the current forms of these hooks are trusted, and returns
    /// the file.
    pub fn trust_hooks(&self, hooks: &[&Hook]) -> Result<String, ConfigWriteError> {
        hooks::trust(&self.config, hooks)
    }

    /// Whether the `PATH` of commands includes the additions of the user's login shell.
    pub fn asks_login_shell(&self) -> bool {
        self.config.state().asks_login_shell()
    }

    /// Returns the warnings about the configuration, for people.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.config.warnings().into_iter();
        warnings.map(|it| it.summary).collect()
    }

    /// Returns the invalid values that are in force, a sentence each.
    pub fn invalid_values(&self) -> Vec<String> {
        self.config.state().problems.clone()
    }

    /// Returns the configuration as last loaded, with its invalid values.
    pub fn state(&self) -> Arc<State> {
        self.config.state()
    }

    /// Returns the configuration without its invalid values, to report further problems. The values
    /// that bound the agent are read from [`Self::state`]: without an invalid one, the sandbox may
    /// be wider.
    pub fn valid_state(&self) -> State {
        self.config.state().without_problems()
    }

    /// Returns what is wrong with the value of a key, with its origin.
    pub fn invalid_value(&self, key: &str) -> Option<String> {
        let path = layers::key_path(key).ok()?;
        let value = layers::get(&self.config.state().merged, &path)?.clone();
        let mut table = toml::Table::new();
        layers::set(&mut table, &path, value);
        let what = check_table(&table).invalid.into_iter().next()?;
        Some(format!("{what}, in {}", self.origin(&path)))
    }

    /// Returns the model that threads start with, and its provider.
    pub fn default_model(&self) -> (Option<String>, Option<String>) {
        let state = self.config.state();
        let choice = providers::choose(&state.merged, None, state.text("model"));
        (
            choice.model.map(str::to_owned),
            choice.provider.map(str::to_owned),
        )
    }

    /// Returns the provider that new threads use, or what to configure so that they have one; none
    /// while no model is configured.
    pub fn provider_choice(&self) -> Option<Result<ProviderChoice, ProviderError>> {
        let state = self.config.state();
        let model = state.text("model")?;
        let choice = providers::resolve(&state.merged, None, Some(model), &self.config.user);
        Some(choice)
    }

    /// Returns the description of a provider.
    pub fn provider(&self, name: &str) -> Result<Provider, ProviderError> {
        providers::read(&self.config.state().merged, name, &self.config.user)
    }

    /// Returns the providers that the configuration names, the default one first.
    pub fn provider_names(&self) -> Vec<String> {
        let state = self.config.state();
        let sections = state.value("model_providers");
        let sections = sections.and_then(toml::Value::as_table).into_iter();
        let mut names: Vec<String> = models::default_provider(&state)
            .map(str::to_owned)
            .into_iter()
            .collect();
        for name in sections.flat_map(toml::Table::keys) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Returns the models that threads can use, given what each provider offers. The default comes
    /// first.
    pub fn models(&self, offered: &[(String, Arc<[OfferedModel]>)]) -> Vec<ConfigModel> {
        let known: &ModelsByProvider = offered;
        let state = self.config.state();
        let mut models: Vec<ConfigModel> = Vec::new();
        for it in models::entries(&state, known) {
            let (provider, model) = (it.provider.map(str::to_owned), it.model.to_owned());
            let is_new =
                |existing: &ConfigModel| existing.provider != provider || existing.model != model;
            if models.iter().all(is_new) {
                models.push(ConfigModel {
                    model_setting: providers::model_setting(&state.merged, it.provider, it.model),
                    name: it.name.unwrap_or(it.model).to_owned(),
                    description: it.description(),
                    provider,
                    model,
                });
            }
        }
        models
    }

    fn origin(&self, path: &[String]) -> String {
        let state = self.config.state();
        let Some((layer, _)) = state.layers.winner(path) else {
            return "nowhere".to_owned();
        };
        if layer.source != ConfigLayerSource::SessionFlags {
            return layer.describe().to_owned();
        }
        let mut overrides = self.overrides.iter().rev();
        let sets_path = |it: &&Override| path.starts_with(it.path()) || it.path().starts_with(path);
        overrides
            .find(sets_path)
            .map_or("-c", Override::origin)
            .to_owned()
    }
}

/// Returns the edit that replaces a value; null removes it.
fn replacement(key: &str, value: serde_json::Value) -> ConfigEdit {
    ConfigEdit {
        key_path: key.to_owned(),
        value,
        merge_strategy: MergeStrategy::Replace,
    }
}

/// Returns the presets of well-known providers.
pub fn presets() -> &'static [Preset] {
    providers::PRESETS
}
