//! Where models are, as the configuration and the presets say.

mod choice;
mod keys;
mod presets;
mod prices;
mod section;

pub(crate) use self::choice::{ModelChoice, choose, spelled};
pub use self::keys::{KeyCommand, KeySource, OAuth, Secret, SignIn};
pub(crate) use self::presets::PRESETS;
pub use self::presets::Preset;
pub(crate) use self::prices::problems as problems_of_prices;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_core::Price;

use self::section::Section;
use super::config::{Config, State};

/// The providers of models that the configuration names. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Providers {
    config: Arc<Config>,
}

/// A provider of models. What is not set is left to whoever calls it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provider {
    /// Its name in the configuration.
    pub name: String,
    /// Where its interface begins.
    pub base_url: String,
    /// How it is spoken to.
    pub wire_api: Option<String>,
    /// Where its key comes from.
    pub key: KeySource,
    /// What every request says in its headers.
    pub http_headers: Vec<(String, String)>,
    /// The same, by the environment variables that hold the values.
    pub env_http_headers: Vec<(String, String)>,
    /// What every request says in its query.
    pub query_params: Vec<(String, String)>,
    /// The most tokens that an answer may have.
    pub output_tokens_max: Option<u32>,
    /// How often a call that got no answer is made again.
    pub request_max_retries: Option<u32>,
    /// How often a call whose answer broke off is made again.
    pub stream_max_retries: Option<u32>,
    /// How long an answer may be silent.
    pub stream_idle_timeout_ms: Option<u32>,
    /// How long a connection may take.
    pub connect_timeout_ms: Option<u32>,
    /// How long a whole answer may take.
    pub total_timeout_ms: Option<u32>,
}

/// A provider, and a model as it is named there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderChoice {
    /// Whom to ask.
    pub provider: Provider,
    /// For what.
    pub model: String,
}

/// Why there is no such provider. The text says what to write where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(String);

impl Providers {
    pub(super) fn of(config: &Arc<Config>) -> Self {
        Self {
            config: config.clone(),
        }
    }

    /// Whom a model is asked of; what is not said here is said by the configuration. May wait for the disk.
    pub fn choose(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<ProviderChoice, ProviderError> {
        let state = self.config.refresh();
        let state = state.map_err(|error| ProviderError(error.to_string()))?;
        self.chosen(&state, provider, model)
    }

    /// The same if it takes no waiting, because the configuration has not changed.
    pub fn choose_at_hand(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Option<Result<ProviderChoice, ProviderError>> {
        let state = self.config.at_hand()?;
        Some(self.chosen(&state, provider, model))
    }

    /// What a model's tokens cost, if that is known. A configuration that has become unusable counts as it was before:
    /// the call itself says what is wrong with it.
    pub async fn price(&self, provider: Option<&str>, model: Option<&str>) -> Option<Price> {
        let state = match self.config.at_hand() {
            Some(state) => state,
            None => {
                let config = self.config.clone();
                let read = tokio::task::spawn_blocking(move || config.refresh().ok()).await;
                let read = read.ok().flatten();
                read.unwrap_or_else(|| self.config.state())
            }
        };
        let choice = choose(&state.merged, provider, model);
        prices::price(&state.merged, choice.provider?, choice.model?)
    }

    fn chosen(
        &self,
        state: &State,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<ProviderChoice, ProviderError> {
        chosen(&state.merged, provider, model, self.config.user_file())
    }
}

/// Whom a model is asked of, or what to write where so that somebody is.
pub(crate) fn chosen(
    config: &toml::Table,
    provider: Option<&str>,
    model: Option<&str>,
    file: &Path,
) -> Result<ProviderChoice, ProviderError> {
    let missing = |what: &str, key: &str| {
        let file = file.display();
        ProviderError(format!("no {what} is configured; set `{key}` in {file}"))
    };
    let choice = choose(config, provider, model);
    let Some(provider) = choice.provider else {
        // A vendor before the name is one that nobody knows.
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

/// The providers that a configuration tells of, the usual one first. What cannot be used is left out, and so is another
/// whose key takes a command: that may ask its user something.
pub(crate) fn told_of(config: &toml::Table, usual: Option<&str>, file: &Path) -> Vec<Provider> {
    let sections = config
        .get("model_providers")
        .and_then(toml::Value::as_table);
    let others = sections.into_iter().flat_map(toml::Table::keys);
    let others = others.map(String::as_str).filter(|it| usual != Some(it));
    let names = usual.into_iter().chain(others);
    let all = names.filter_map(|it| read(config, it, file).ok());
    let is_quiet = |it: &Provider| !matches!(it.key, KeySource::Command(_));
    all.filter(|it| usual == Some(it.name.as_str()) || is_quiet(it))
        .collect()
}

/// What a configuration says of a provider; for a well-known one, what is not said is known.
pub(crate) fn read(
    config: &toml::Table,
    name: &str,
    file: &Path,
) -> Result<Provider, ProviderError> {
    let providers = config.get("model_providers");
    let section = Section {
        table: providers.and_then(|providers| providers.get(name)),
        place: format!("[model_providers.{name}] in {}", file.display()),
    };
    let own = section.text("base_url")?;
    // Whoever names another address gets nothing of the preset, least of all its key.
    let preset = presets::named(name).filter(|_| own.is_none());
    let Some(base_url) = own.or_else(|| Some(preset?.base_url.to_owned())) else {
        let own = providers.and_then(toml::Value::as_table).into_iter();
        let own = own.flatten().filter(|(_, it)| it.get("base_url").is_some());
        let mut known: Vec<&str> = PRESETS.iter().map(|it| it.name).collect();
        known.extend(
            own.map(|(name, _)| name.as_str())
                .filter(|it| presets::named(it).is_none()),
        );
        return Err(ProviderError(format!(
            "the model provider `{name}` has no base_url; set it under {}, or use one that is known: {}",
            section.place,
            known.join(", ")
        )));
    };
    let usual_wire = |it: &Preset| it.wire_api.to_owned();
    Ok(Provider {
        name: name.to_owned(),
        base_url,
        wire_api: section.text("wire_api")?.or_else(|| preset.map(usual_wire)),
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

/// The user's own folder, where commands for keys are started: nothing of a workspace is there.
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
    fn a_preset_says_what_the_configuration_does_not() {
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
        let mended = provider(section, "openai").expect("a provider");
        assert_eq!(mended.base_url, openai.base_url);
        assert_eq!(mended.wire_api.as_deref(), Some("chat"));
        assert_eq!(mended.key, variable("MINE"));
        assert_eq!(mended.total_timeout_ms, Some(9));
        let llama = provider("", "llamacpp").expect("a provider");
        assert_eq!(llama.key, KeySource::None);
    }

    #[test]
    fn a_preset_says_nothing_of_another_address() {
        let section = "[model_providers.openai]\nbase_url = 'http://127.0.0.1:9/v1'";
        let own = provider(section, "openai").expect("a provider");
        assert_eq!(own.key, KeySource::None);
        assert_eq!(own.wire_api, None);
    }

    #[test]
    fn a_vendor_that_nobody_knows_is_named() {
        for (config, model, wanted) in [
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
        ] {
            let table: toml::Table = config.parse().expect("TOML");
            let error = chosen(&table, None, model, Path::new("/c/config.toml"));
            let error = error.expect_err(config).to_string();
            assert!(error.starts_with(wanted), "{config} {model:?}: {error}");
        }
    }

    #[test]
    fn a_provider_that_nobody_knows_is_said() {
        let section = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'";
        let error = provider(section, "nobody").expect_err("no provider");
        assert!(error.ends_with("lmstudio, vllm, mine"), "{error}");
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
