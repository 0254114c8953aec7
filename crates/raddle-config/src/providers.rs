//! The model providers, from the configuration and the presets.

mod choice;
mod keys;
mod presets;
pub(crate) mod prices;
mod section;

pub(crate) use self::choice::model_setting;
pub use self::choice::{ModelChoice, choose};
pub use self::keys::{KeyCommand, KeySource, OAuth, Secret, SignIn};
pub(crate) use self::presets::PRESETS;
pub use self::presets::{MOCK_BASE_URL, Preset};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_core::Price;

use self::section::Section;
use crate::config::{Config, State};
use crate::suggestions::nearest;

/// The model providers that the configuration names. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Providers {
    config: Arc<Config>,
}

/// A model provider. The caller has defaults for values that are not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provider {
    /// Its name in the configuration.
    pub name: String,
    /// Base URL of its interface.
    pub base_url: String,
    /// Wire protocol of its interface.
    pub wire_api: Option<String>,
    /// Source of its key.
    pub key: KeySource,
    /// Headers of every request.
    pub http_headers: Vec<(String, String)>,
    /// Headers of every request, by the environment variables that hold the values.
    pub env_http_headers: Vec<(String, String)>,
    /// Query parameters of every request.
    pub query_params: Vec<(String, String)>,
    /// The maximum number of tokens of a response.
    pub output_tokens_max: Option<u32>,
    /// How often to retry a call that got no response.
    pub request_max_retries: Option<u32>,
    /// How often to retry a call whose response broke off.
    pub stream_max_retries: Option<u32>,
    /// How long a response may be idle.
    pub stream_idle_timeout_ms: Option<u32>,
    /// Timeout for opening a connection.
    pub connect_timeout_ms: Option<u32>,
    /// Timeout of a whole response.
    pub total_timeout_ms: Option<u32>,
}

/// A provider, and the name of a model there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderChoice {
    /// The provider to call.
    pub provider: Provider,
    /// Name of the model there.
    pub model: String,
}

/// Reason why there is no such provider. The text says what to configure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(String);

impl Providers {
    /// Returns the providers of a configuration, which may change later.
    pub fn of(config: &Arc<Config>) -> Self {
        Self {
            config: config.clone(),
        }
    }

    /// Returns the provider of a model; the configuration supplies what is not given. May block on
    /// the disk.
    pub fn choose(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<ProviderChoice, ProviderError> {
        let state = self.config.refresh();
        let state = state.map_err(|error| ProviderError(error.to_string()))?;
        self.resolve(&state, provider, model)
    }

    /// Like [`Self::choose`], if it needs no waiting because the configuration has not changed.
    pub fn choose_without_blocking(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Option<Result<ProviderChoice, ProviderError>> {
        let state = self.config.without_blocking()?;
        Some(self.resolve(&state, provider, model))
    }

    /// Returns the price of a model's tokens, if it is known. If the configuration has become
    /// unusable, the last one counts: the call itself reports the problem.
    pub async fn price(&self, provider: Option<&str>, model: Option<&str>) -> Option<Price> {
        let state = self.last_usable().await;
        let choice = choose(&state.merged, provider, model);
        prices::price(&state.merged, choice.provider?, choice.model?)
    }

    /// Returns the names of the provider and of the model; the configuration supplies what is not
    /// given. There may be no such provider.
    pub async fn names(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> (Option<String>, Option<String>) {
        let state = self.last_usable().await;
        let choice = choose(&state.merged, provider, model);
        let owned = |it: &str| it.to_owned();
        (choice.provider.map(owned), choice.model.map(owned))
    }

    /// Returns the current configuration, or the last one if it has become unusable.
    async fn last_usable(&self) -> Arc<State> {
        if let Some(state) = self.config.without_blocking() {
            return state;
        }
        let config = self.config.clone();
        let loaded = tokio::task::spawn_blocking(move || config.refresh().ok()).await;
        let loaded = loaded.ok().flatten();
        loaded.unwrap_or_else(|| self.config.state())
    }

    fn resolve(
        &self,
        state: &State,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<ProviderChoice, ProviderError> {
        resolve(&state.merged, provider, model, self.config.user_file())
    }
}

/// Returns the provider of a model, or what to configure so that there is one.
pub(crate) fn resolve(
    config: &toml::Table,
    provider: Option<&str>,
    model: Option<&str>,
    file: &Path,
) -> Result<ProviderChoice, ProviderError> {
    let missing = |what: &str, key: &str| {
        let mut keys = ["model", "model_provider"].into_iter();
        let invalid = keys.find(|it| config.get(*it).is_some_and(|it| !it.is_str()));
        let file = file.display();
        ProviderError(match invalid {
            Some(key) => format!("`{key}` must be a string, such as \"NAME\"; change it in {file}"),
            None => {
                format!("no {what} is configured; run `raddle init`, or set `{key}` in {file}")
            }
        })
    };
    let choice = choose(config, provider, model);
    let Some(provider) = choice.provider else {
        // The prefix of the name is an unknown vendor.
        let vendor = choice.model.and_then(|it| it.split_once('/'));
        let unknown = vendor.and_then(|(it, _)| read(config, it, file).err());
        return Err(unknown.unwrap_or_else(|| missing("model provider", "model_provider")));
    };
    let provider = read(config, provider, file)?;
    let model = choice.model.ok_or_else(|| missing("model", "model"))?;
    Ok(ProviderChoice {
        provider,
        model: model.to_owned(),
    })
}

/// Rejects a model whose prefix misspells a known provider, before it reaches this one.
pub fn check_prefix(
    config: &toml::Table,
    provider: &str,
    model: &str,
    file: &Path,
) -> Result<(), ProviderError> {
    match model.split_once('/') {
        Some((vendor, _)) if choice::misspells_provider(config, provider, model) => {
            read(config, vendor, file).map(drop)
        }
        _ => Ok(()),
    }
}

/// Returns the usable providers of a configuration, the default one first. Leaves out others whose
/// key takes a command: that may prompt the user.
pub fn usable_providers(
    config: &toml::Table,
    default_provider: Option<&str>,
    file: &Path,
) -> Vec<Provider> {
    let sections = config
        .get("model_providers")
        .and_then(toml::Value::as_table);
    let others = sections.into_iter().flat_map(toml::Table::keys);
    let others = others
        .map(String::as_str)
        .filter(|it| default_provider != Some(it));
    let names = default_provider.into_iter().chain(others);
    let all = names.filter_map(|it| read(config, it, file).ok());
    let needs_no_command = |it: &Provider| !matches!(it.key, KeySource::Command(_));
    all.filter(|it| default_provider == Some(it.name.as_str()) || needs_no_command(it))
        .collect()
}

/// Returns a provider as configured; a preset supplies values that are not set.
pub fn read(config: &toml::Table, name: &str, file: &Path) -> Result<Provider, ProviderError> {
    let providers = config.get("model_providers");
    let section = Section {
        table: providers.and_then(|providers| providers.get(name)),
        location: format!("[model_providers.{name}] in {}", file.display()),
    };
    let own_url = section.text("base_url")?;
    // A provider with another address gets nothing of the preset, least of all its key.
    let preset = presets::named(name).filter(|_| own_url.is_none());
    let Some(base_url) = own_url.or_else(|| Some(preset?.base_url.to_owned())) else {
        let known = choice::known_names(config);
        let similar = nearest(name, known.iter().copied());
        let advice = match similar {
            Some(similar) => format!("did you mean `{similar}`? Otherwise set it under"),
            None => "set it under".to_owned(),
        };
        return Err(ProviderError(format!(
            "the model provider `{name}` has no base_url; {advice} {}, or use one that is known: {}",
            section.location,
            known.join(", ")
        )));
    };
    let preset_wire_api = |it: &Preset| it.wire_api.to_owned();
    Ok(Provider {
        name: name.to_owned(),
        base_url,
        wire_api: section
            .text("wire_api")?
            .or_else(|| preset.map(preset_wire_api)),
        key: section.key(preset, folder_of(file))?,
        http_headers: section.texts("http_headers")?,
        env_http_headers: section.texts("env_http_headers")?,
        query_params: section.texts("query_params")?,
        output_tokens_max: section.number("max_output_tokens")?,
        request_max_retries: section.number("request_max_retries")?,
        stream_max_retries: section.number("stream_max_retries")?,
        stream_idle_timeout_ms: section.number("stream_idle_timeout_ms")?,
        connect_timeout_ms: section.number("connect_timeout_ms")?,
        total_timeout_ms: section.number("total_timeout_ms")?,
    })
}

/// Returns the user's own folder, where commands for keys are started: it is not part of a
/// workspace.
fn folder_of(file: &Path) -> PathBuf {
    file.parent().map_or_else(|| "/".into(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(config: &str, name: &str) -> Result<Provider, String> {
        let config: toml::Table = config.parse().expect("TOML");
        read(&config, name, Path::new("/c/config.toml")).map_err(|error| error.to_string())
    }

    fn variable(name: &str) -> KeySource {
        KeySource::Environment {
            variable: name.to_owned(),
            instructions: None,
        }
    }

    #[test]
    fn a_preset_supplies_values_that_are_not_configured() {
        let openai = provider("", "openai").expect("a provider");
        assert_eq!(openai.base_url, "https://api.openai.com/v1");
        assert_eq!(openai.wire_api.as_deref(), Some("responses"));
        let stored = SignIn {
            variable: Some("OPENAI_API_KEY".to_owned()),
            ..SignIn::default()
        };
        assert_eq!(openai.key, KeySource::Stored(stored));
        let section =
            "[model_providers.openai]\nwire_api = 'chat'\nenv_key = 'MINE'\ntotal_timeout_ms = 9";
        let changed = provider(section, "openai").expect("a provider");
        assert_eq!(changed.base_url, openai.base_url);
        assert_eq!(changed.wire_api.as_deref(), Some("chat"));
        assert_eq!(changed.key, variable("MINE"));
        assert_eq!(changed.total_timeout_ms, Some(9));
        let llama = provider("", "llamacpp").expect("a provider");
        assert_eq!(llama.key, KeySource::None);
    }

    #[test]
    fn a_preset_does_not_apply_to_another_address() {
        let section = "[model_providers.openai]\nbase_url = 'http://127.0.0.1:9/v1'";
        let own = provider(section, "openai").expect("a provider");
        assert_eq!(own.key, KeySource::None);
        assert_eq!(own.wire_api, None);
    }

    #[test]
    fn an_unknown_vendor_is_named_in_the_error() {
        for (config, model, expected) in [
            (
                "",
                Some("nope/any"),
                "the model provider `nope` has no base_url;",
            ),
            (
                "model = 'openai/gpt'",
                Some("nope/any"),
                "the model provider `nope` has no base_url;",
            ),
            ("", Some("any"), "no model provider is configured;"),
            ("", Some("openai/"), "no model provider is configured;"),
            ("model_provider = 'openai'", None, "no model is configured;"),
            (
                "model_provider = 'openai'",
                Some("anthopic/claude"),
                "the model provider `anthopic` has no base_url; did you mean `anthropic`? ",
            ),
            ("model = 7", None, "`model` must be a string, "),
            (
                "model_provider = ['openai']",
                Some("gpt"),
                "`model_provider` must be a string, ",
            ),
        ] {
            let table: toml::Table = config.parse().expect("TOML");
            let error = resolve(&table, None, model, Path::new("/c/config.toml"));
            let error = error.expect_err(config).to_string();
            assert!(error.starts_with(expected), "{config} {model:?}: {error}");
        }
    }

    #[test]
    fn an_unknown_provider_lists_the_known_ones() {
        let section = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'";
        let error = provider(section, "nobody").expect_err("no provider");
        assert!(error.ends_with("lmstudio, vllm, mock, mine"), "{error}");
        let error = provider("", "nobody").expect_err("no provider");
        assert!(
            error.starts_with(
                "the model provider `nobody` has no base_url; set it under [model_providers.nobody] in \
                 /c/config.toml, or use one that is known: openai, anthropic, gemini,"
            ),
            "{error}"
        );
    }
}
