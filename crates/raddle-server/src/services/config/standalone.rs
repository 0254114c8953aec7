//! The configuration without a server: what a command line reads of it, and writes to it.

use std::path::Path;
use std::sync::Arc;

use raddle_protocol::{
    ConfigEdit, ConfigLayerSource, MergeStrategy, ThreadStartParams, WriteStatus,
};
use raddle_rpc::ErrorObject;

use super::{Config, ConfigError, ConfigWriter, Override, keys, layers, value_of};
use crate::server::Paths;
use crate::services::models::{self, ModelsByProvider};
use crate::services::providers::{self, Preset, Provider, ProviderChoice, ProviderError};
use crate::services::vendors::OfferedModel;
use crate::services::{processes, threads};

/// The configuration of a home, as a server would read it.
#[derive(Debug)]
pub struct Configuration {
    config: Config,
    overrides: Vec<Override>,
}

/// A value that counts. What may be a secret is not shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigValue {
    /// Its key, as it is written in TOML.
    pub key: String,
    /// What it says.
    pub value: toml::Value,
    /// Where it was said: a file, `-c`, or the name of an environment variable.
    pub origin: String,
}

/// A model that threads can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigModel {
    /// Its provider; nothing where none is configured.
    pub provider: Option<String>,
    /// As it is named there.
    pub model: String,
    /// What says both as `model`; nothing if `model_provider` must be said beside it.
    pub spelled: Option<String>,
    /// Its name for people.
    pub name: String,
    /// A sentence about it.
    pub description: String,
}

/// A value that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenValue {
    /// The file.
    pub file: String,
    /// What says something else, and is stronger.
    pub overridden: Option<String>,
    /// What is odd about the key.
    pub warning: Option<String>,
}

impl Configuration {
    /// Reads it. Overrides are in the order of their strength, the strongest last.
    pub fn open(paths: &Paths, overrides: Vec<Override>) -> Result<Self, ConfigError> {
        let config = Config::open(paths, &overrides)?;
        Ok(Self { config, overrides })
    }

    /// The user's file, which may not be there.
    pub fn user_file(&self) -> &Path {
        &self.config.user
    }

    /// The administrator's file, which may not be there.
    pub fn system_file(&self) -> &Path {
        &self.config.system
    }

    /// All values that count.
    pub fn values(&self) -> Vec<ConfigValue> {
        let state = self.config.state();
        let shown = layers::without_secrets(&state.merged);
        let mut values = Vec::new();
        layers::leaves(&shown, &mut Vec::new(), &mut |path| {
            if let Some(value) = layers::get(&shown, path) {
                values.push(ConfigValue {
                    key: keys::dotted(path),
                    value: value.clone(),
                    origin: self.origin(path),
                });
            }
        });
        values
    }

    /// What a key says, which may be a table; nothing if nobody says it.
    pub fn get(&self, key: &str) -> Result<Option<toml::Value>, String> {
        let path = path(key)?;
        let shown = layers::without_secrets(&self.config.state().merged);
        Ok(layers::get(&shown, &path).cloned())
    }

    /// What holds while nobody says a key, for people; nothing if the key is not known.
    pub fn usual(&self, key: &str) -> Option<&'static str> {
        keys::known(&path(key).ok()?).map(|it| it.usual)
    }

    /// What is odd about the key itself.
    pub fn oddity(&self, key: &str) -> Option<String> {
        let path = path(key).ok()?;
        keys::oddity(&path)
    }

    /// Writes a value to the user's file, where comments and order stay. What is not TOML is a plain string.
    pub fn set(&self, key: &str, value: &str) -> Result<WrittenValue, String> {
        self.write(key, layers::to_json(&value_of(value)))
    }

    /// Takes a key out of the user's file.
    pub fn unset(&self, key: &str) -> Result<WrittenValue, String> {
        self.write(key, serde_json::Value::Null)
    }

    fn write(&self, key: &str, value: serde_json::Value) -> Result<WrittenValue, String> {
        let path = path(key)?;
        let edit = ConfigEdit {
            key_path: key.to_owned(),
            value,
            merge_strategy: MergeStrategy::Replace,
        };
        let written = self.config.write(&[edit], None, None, ConfigWriter::Local);
        let written = written.map_err(|error| ErrorObject::from(error).message)?;
        let is_overridden = written.status == WriteStatus::OkOverridden;
        Ok(WrittenValue {
            file: written.file_path,
            overridden: is_overridden.then(|| self.origin(&path)),
            warning: keys::oddity(&path),
        })
    }

    /// Whether the `PATH` of commands has what the user's login shell adds to it.
    pub fn asks_login_shell(&self) -> bool {
        self.config.state().asks_login_shell()
    }

    /// What people should know about it.
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.config.warnings().into_iter();
        warnings.map(|it| it.summary).collect()
    }

    /// The values that count and cannot be, a sentence each, and what a thread that begins is refused for.
    pub fn problems(&self) -> Vec<String> {
        let state = self.config.state();
        let mut problems = state.problems.clone();
        // A thread would be refused for these once more, in other words.
        let state = state.without_problems();
        let start = threads::settings(&ThreadStartParams::default(), &state).map(drop);
        // A thread is refused for the first of them only.
        let budgets = threads::check_budgets(&state);
        let network = processes::hosts(&state).map(drop);
        for refusal in [start, budgets, network]
            .into_iter()
            .filter_map(Result::err)
        {
            let what = ErrorObject::from(refusal).message.to_string();
            if !problems.contains(&what) {
                problems.push(what);
            }
        }
        problems
    }

    /// What is wrong with what a key says, with the place that says it.
    pub fn wrong(&self, key: &str) -> Option<String> {
        let path = path(key).ok()?;
        let value = layers::get(&self.config.state().merged, &path)?.clone();
        let mut alone = toml::Table::new();
        layers::set(&mut alone, &path, value);
        let what = super::odd(&alone).invalid.into_iter().next()?;
        Some(format!("{what}, in {}", self.origin(&path)))
    }

    /// The model that threads begin with, and its provider.
    pub fn chosen(&self) -> (Option<String>, Option<String>) {
        let state = self.config.state();
        let choice = providers::choose(&state.merged, None, state.text("model"));
        (
            choice.model.map(str::to_owned),
            choice.provider.map(str::to_owned),
        )
    }

    /// Whom threads that begin ask, or what to write where so that they ask somebody; nothing while no model is
    /// configured.
    pub fn asked(&self) -> Option<Result<ProviderChoice, ProviderError>> {
        let state = self.config.state();
        let model = state.text("model")?;
        let chosen = providers::chosen(&state.merged, None, Some(model), &self.config.user);
        Some(chosen)
    }

    /// What is known of a provider.
    pub fn provider(&self, name: &str) -> Result<Provider, ProviderError> {
        providers::read(&self.config.state().merged, name, &self.config.user)
    }

    /// The providers that it names, the usual one first.
    pub fn provider_names(&self) -> Vec<String> {
        let state = self.config.state();
        let sections = state.value("model_providers");
        let sections = sections.and_then(toml::Value::as_table).into_iter();
        let mut names: Vec<String> = models::usual_provider(&state)
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

    /// The models that threads can have, where providers have these, each by its name. The default comes first.
    pub fn models(&self, offered: &[(String, Arc<[OfferedModel]>)]) -> Vec<ConfigModel> {
        let known: &ModelsByProvider = offered;
        let state = self.config.state();
        let mut models: Vec<ConfigModel> = Vec::new();
        for it in models::entries(&state, known) {
            let (provider, model) = (it.provider.map(str::to_owned), it.model.to_owned());
            let is_new = |has: &ConfigModel| has.provider != provider || has.model != model;
            if models.iter().all(is_new) {
                models.push(ConfigModel {
                    spelled: providers::spelled(&state.merged, it.provider, it.model),
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
        let mut said = self.overrides.iter().rev();
        let is_here = |it: &&Override| path.starts_with(&it.path) || it.path.starts_with(path);
        said.find(is_here).map_or("-c", Override::origin).to_owned()
    }
}

/// The well-known providers.
pub fn presets() -> &'static [Preset] {
    providers::PRESETS
}

fn path(key: &str) -> Result<Vec<String>, String> {
    layers::key_path(key).map_err(|error| format!("`{key}`: {error}"))
}
