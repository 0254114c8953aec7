//! Where models are, as the configuration says.

use std::sync::Arc;

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
    /// The environment variable that holds its key.
    pub env_key: Option<String>,
    /// What every request says in its headers.
    pub http_headers: Vec<(String, String)>,
    /// The same, by the environment variables that hold the values.
    pub env_http_headers: Vec<(String, String)>,
    /// What every request says in its query.
    pub query_params: Vec<(String, String)>,
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
        let state = self.config.refresh();
        let state = state.map_err(|error| ProviderError(error.to_string()))?;
        self.provider(&state, name)
    }

    /// The same if it takes no waiting, because the configuration has not changed.
    pub fn at_hand(&self, name: Option<&str>) -> Option<Result<Provider, ProviderError>> {
        let state = self.config.at_hand()?;
        Some(self.provider(&state, name))
    }

    fn provider(&self, state: &State, name: Option<&str>) -> Result<Provider, ProviderError> {
        let file = self.config.user_file().display();
        let Some(name) = name.or_else(|| state.text("model_provider")) else {
            return Err(ProviderError(format!(
                "no model provider is configured; set `model_provider` in {file}"
            )));
        };
        let provider = state
            .merged
            .get("model_providers")
            .and_then(|providers| providers.get(name));
        let section = Section {
            provider,
            place: format!("[model_providers.{name}] in {file}"),
        };
        let Some(base_url) = section.text("base_url")? else {
            return Err(ProviderError(format!(
                "the model provider `{name}` has no base_url; set it under {}",
                section.place
            )));
        };
        Ok(Provider {
            name: name.to_owned(),
            base_url,
            wire_api: section.text("wire_api")?,
            env_key: section.text("env_key")?,
            http_headers: section.texts("http_headers")?,
            env_http_headers: section.texts("env_http_headers")?,
            query_params: section.texts("query_params")?,
            request_max_retries: section.number("request_max_retries")?,
            stream_max_retries: section.number("stream_max_retries")?,
            stream_idle_timeout_ms: section.number("stream_idle_timeout_ms")?,
            connect_timeout_ms: section.number("connect_timeout_ms")?,
            total_timeout_ms: section.number("total_timeout_ms")?,
        })
    }
}

/// The part of the configuration that is about one provider.
struct Section<'a> {
    provider: Option<&'a toml::Value>,
    place: String,
}

impl Section<'_> {
    fn get(&self, key: &str) -> Option<&toml::Value> {
        self.provider.and_then(|provider| provider.get(key))
    }

    fn wrong(&self, key: &str, wanted: &str) -> ProviderError {
        ProviderError(format!("`{key}` must be {wanted}; see {}", self.place))
    }

    fn text(&self, key: &str) -> Result<Option<String>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = value.as_str().ok_or_else(|| self.wrong(key, "a text"))?;
        Ok(Some(text.to_owned()))
    }

    fn number(&self, key: &str) -> Result<Option<u32>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value.as_integer().and_then(|it| u32::try_from(it).ok());
        let number = number.ok_or_else(|| self.wrong(key, "a number from 0 to 4294967295"))?;
        Ok(Some(number))
    }

    fn texts(&self, key: &str) -> Result<Vec<(String, String)>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = || self.wrong(key, "a table of texts");
        let table = value.as_table().ok_or_else(wrong)?;
        let texts = table.iter().map(|(name, value)| {
            let text = value.as_str().ok_or_else(wrong)?;
            Ok((name.clone(), text.to_owned()))
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(text: &str) -> toml::Value {
        toml::from_str(text).expect("TOML")
    }

    #[test]
    fn what_a_key_must_be_is_said() {
        let provider = section("a = 1\nb = 'x'\nc = { d = 'y' }\ne = -1\nf = { g = 2 }");
        let section = Section {
            provider: Some(&provider),
            place: "[here]".to_owned(),
        };
        assert_eq!(section.number("a"), Ok(Some(1)));
        assert_eq!(section.text("b"), Ok(Some("x".to_owned())));
        assert_eq!(
            section.texts("c"),
            Ok(vec![("d".to_owned(), "y".to_owned())])
        );
        assert_eq!(section.number("z"), Ok(None));
        let wrong = [
            section.text("a").err(),
            section.number("b").err(),
            section.number("e").err(),
            section.texts("b").err(),
            section.texts("f").err(),
        ];
        for error in wrong {
            let error = error.expect("an error").to_string();
            assert!(error.ends_with("; see [here]"), "{error}");
        }
    }
}
