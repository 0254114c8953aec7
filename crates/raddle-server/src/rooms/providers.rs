//! Where models are, as the configuration says.

use std::sync::Arc;

use super::config::Config;

/// The providers of models that the configuration names. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Providers {
    config: Arc<Config>,
}

/// A provider of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Where its interface begins.
    pub base_url: String,
    /// The environment variable that holds its key.
    pub env_key: Option<String>,
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

    /// A provider by its name in the configuration. May wait for the disk.
    pub fn get(&self, name: Option<&str>) -> Result<Provider, ProviderError> {
        let file = self.config.user_file().display();
        let state = self.config.refresh();
        let state = state.map_err(|error| ProviderError(error.to_string()))?;
        let Some(name) = name.or_else(|| state.text("model_provider")) else {
            return Err(ProviderError(format!(
                "no model provider is configured; set `model_provider` in {file}"
            )));
        };
        let provider = state
            .merged
            .get("model_providers")
            .and_then(|providers| providers.get(name));
        let text = |key: &str| {
            let value = provider.and_then(|provider| provider.get(key));
            value.and_then(toml::Value::as_str).map(str::to_owned)
        };
        let Some(base_url) = text("base_url") else {
            return Err(ProviderError(format!(
                "the model provider `{name}` has no base_url; set it under [model_providers.{name}] in {file}"
            )));
        };
        Ok(Provider {
            base_url,
            env_key: text("env_key"),
        })
    }
}
