//! The choice of a provider for a model. `vendor/name` names both.

use super::presets;
use crate::layers;
use crate::suggestions::{mistyped, nearest};

/// A provider, and the name of a model there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelChoice<'a> {
    /// The provider, if one is named or configured.
    pub provider: Option<&'a str>,
    /// Name of the model there.
    pub model: Option<&'a str>,
}

/// Resolves a provider and a model, either of which may be missing. A name like `vendor/name`
/// selects that vendor, unless the provider that is selected otherwise has such names itself. A
/// name that misspells a known vendor selects none: no default provider may receive it silently.
pub fn choose<'a>(
    config: &'a toml::Table,
    provider: Option<&'a str>,
    model: Option<&'a str>,
) -> ModelChoice<'a> {
    let default_provider = provider.or_else(|| layers::text(config, "model_provider"));
    let is_clear = |name: &&str| model.is_none_or(|model| !misspells_provider(config, name, model));
    if default_provider.is_some_and(|it| has_slashes(config, it)) {
        // A caller that names the provider beside the model intends that provider.
        let is_intended = |name: &&str| provider.is_some() || is_clear(name);
        return ModelChoice {
            provider: default_provider.filter(is_intended),
            model,
        };
    }
    let at_vendor = |model: &'a str| {
        let (vendor, name) = model.split_once('/')?;
        (!name.is_empty() && is_known(config, vendor)).then_some((vendor, name))
    };
    if let Some((vendor, name)) = model.and_then(at_vendor) {
        return ModelChoice {
            provider: Some(vendor),
            model: Some(name),
        };
    }
    // A plain name belongs to the provider of the configured model. A name with an unknown vendor
    // is not a plain name, except where names contain slashes.
    let is_name =
        |vendor: &str| model.is_none_or(|it| !it.contains('/')) || has_slashes(config, vendor);
    let configured = || layers::text(config, "model").and_then(at_vendor);
    let configured = || configured().map(|it| it.0).filter(|it| is_name(it));
    ModelChoice {
        provider: default_provider.or_else(configured).filter(is_clear),
        model,
    }
}

/// Whether the prefix of a model's name is not a provider, but probably a misspelt one. Where names
/// contain slashes, an organisation may be called almost like a provider (`mistralai`, `x-ai`), so
/// that only a single typing error counts there.
pub(super) fn misspells_provider(config: &toml::Table, provider: &str, model: &str) -> bool {
    let vendor = match model.split_once('/') {
        Some((vendor, name)) if !name.is_empty() && !is_known(config, vendor) => vendor,
        _ => return false,
    };
    let known = known_names(config).into_iter();
    match has_slashes(config, provider) {
        true => mistyped(vendor, known).is_some(),
        false => nearest(vendor, known).is_some(),
    }
}

/// Returns the names of all providers with an address: the presets first.
pub(super) fn known_names(config: &toml::Table) -> Vec<&str> {
    let sections = config
        .get("model_providers")
        .and_then(toml::Value::as_table);
    let sections = sections
        .into_iter()
        .flatten()
        .filter(|(_, it)| it.get("base_url").is_some());
    let own = sections
        .map(|(name, _)| name.as_str())
        .filter(|it| presets::named(it).is_none());
    let presets = presets::PRESETS.iter().map(|it| it.name);
    presets.chain(own).collect()
}

/// Returns the value of `model` that alone names a model of a provider. None if there is no such
/// value: where `model_provider` has models with slashes in their names, every text is one of its
/// names.
pub(crate) fn model_setting(
    config: &toml::Table,
    provider: Option<&str>,
    model: &str,
) -> Option<String> {
    let expected = ModelChoice {
        provider,
        model: Some(model),
    };
    let qualified = provider.map(|it| format!("{it}/{model}"));
    let mut candidates = qualified.into_iter().chain([model.to_owned()]);
    candidates.find(|text| {
        let mut config = config.clone();
        config.insert("model".to_owned(), text.as_str().into());
        choose(&config, None, Some(text)) == expected
    })
}

fn section<'a>(config: &'a toml::Table, name: &str) -> Option<&'a toml::Value> {
    config.get("model_providers")?.get(name)
}

fn is_known(config: &toml::Table, name: &str) -> bool {
    section(config, name).is_some() || presets::named(name).is_some()
}

/// Whether a provider's models may have slashes in their names. Assumed for providers that the user
/// defined.
fn has_slashes(config: &toml::Table, name: &str) -> bool {
    let is_own = section(config, name).is_some_and(|it| it.get("base_url").is_some());
    is_own || presets::named(name).is_none_or(|it| it.has_slashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_prefix_selects_the_provider_unless_names_have_slashes() {
        let mine = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n";
        for (config, provider, model, expected) in [
            ("", None, Some("openai/gpt-5"), (Some("openai"), "gpt-5")),
            ("", None, Some("gpt-5"), (None, "gpt-5")),
            ("", None, Some("nobody/gpt-5"), (None, "nobody/gpt-5")),
            ("", None, Some("openai/"), (None, "openai/")),
            ("", None, Some("mine/m"), (Some("mine"), "m")),
            (
                "",
                None,
                Some("openrouter/anthropic/claude"),
                (Some("openrouter"), "anthropic/claude"),
            ),
            // A thread with one vendor switches to another.
            (
                "",
                Some("openai"),
                Some("anthropic/claude"),
                (Some("anthropic"), "claude"),
            ),
            // Brokers, engines and providers that the user defined name their models freely.
            (
                "",
                Some("openrouter"),
                Some("anthropic/claude"),
                (Some("openrouter"), "anthropic/claude"),
            ),
            (
                "",
                Some("vllm"),
                Some("openai/gpt-oss"),
                (Some("vllm"), "openai/gpt-oss"),
            ),
            (
                "",
                Some("mine"),
                Some("openai/gpt-oss"),
                (Some("mine"), "openai/gpt-oss"),
            ),
            (
                "",
                Some("gone"),
                Some("openai/gpt-oss"),
                (Some("gone"), "openai/gpt-oss"),
            ),
            (
                "model_provider = 'mine'",
                None,
                Some("openai/gpt-oss"),
                (Some("mine"), "openai/gpt-oss"),
            ),
            (
                "model_provider = 'openai'",
                None,
                Some("gpt-5"),
                (Some("openai"), "gpt-5"),
            ),
            (
                "model = 'anthropic/claude'",
                None,
                Some("claude-2"),
                (Some("anthropic"), "claude-2"),
            ),
            (
                "model = 'anthropic/claude'",
                None,
                Some("openai/gpt-5"),
                (Some("openai"), "gpt-5"),
            ),
            // An unknown vendor is not part of a name where names have no slashes.
            (
                "model = 'anthropic/claude'",
                None,
                Some("nobody/gpt-5"),
                (None, "nobody/gpt-5"),
            ),
            (
                "model = 'mine/m'",
                None,
                Some("nobody/gpt-5"),
                (Some("mine"), "nobody/gpt-5"),
            ),
            // A misspelt vendor does not reach the default provider,
            (
                "model_provider = 'mine'",
                None,
                Some("anthopic/claude"),
                (None, "anthopic/claude"),
            ),
            (
                "model = 'mine/m'",
                None,
                Some("opneai/gpt-5"),
                (None, "opneai/gpt-5"),
            ),
            (
                "model_provider = 'openai'",
                None,
                Some("antropc/claude"),
                (None, "antropc/claude"),
            ),
            (
                "",
                Some("openai"),
                Some("anthopic/claude"),
                (None, "anthopic/claude"),
            ),
            // unless the request names the provider too, or the prefix is another name.
            (
                "",
                Some("mine"),
                Some("anthopic/claude"),
                (Some("mine"), "anthopic/claude"),
            ),
            (
                "model_provider = 'openrouter'",
                None,
                Some("mistralai/mistral-large"),
                (Some("openrouter"), "mistralai/mistral-large"),
            ),
            (
                "model_provider = 'openrouter'",
                None,
                Some("x-ai/grok-4"),
                (Some("openrouter"), "x-ai/grok-4"),
            ),
            (
                "model_provider = 'huggingface'",
                None,
                Some("deepseek-ai/DeepSeek-V3"),
                (Some("huggingface"), "deepseek-ai/DeepSeek-V3"),
            ),
            (
                "model_provider = 'groq'",
                None,
                Some("moonshotai/kimi-k2"),
                (Some("groq"), "moonshotai/kimi-k2"),
            ),
            (
                "model_provider = 'gemini'",
                None,
                Some("models/gemini-3-pro"),
                (Some("gemini"), "models/gemini-3-pro"),
            ),
        ] {
            let table: toml::Table = format!("{config}\n{mine}").parse().expect("TOML");
            let choice = choose(&table, provider, model);
            let (provider, model) = expected;
            let expected_choice = ModelChoice {
                provider,
                model: Some(model),
            };
            assert_eq!(choice, expected_choice, "{config} {choice:?}");
        }
    }

    #[test]
    fn a_model_setting_names_exactly_that_model() {
        let mine = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n";
        for (config, provider, model, expected) in [
            (
                "model = 'openai/gpt'",
                Some("openai"),
                "gpt",
                Some("openai/gpt"),
            ),
            ("model = 'openai/gpt'", Some("mine"), "m", Some("mine/m")),
            (
                "model = 'mine/m'",
                Some("mine"),
                "openai/m",
                Some("mine/openai/m"),
            ),
            (
                "model_provider = 'openai'",
                Some("mine"),
                "m",
                Some("mine/m"),
            ),
            (
                "model_provider = 'openai'",
                Some("openai"),
                "gpt",
                Some("openai/gpt"),
            ),
            // The whole text would be one of its names.
            ("model_provider = 'mine'", Some("mine"), "m", Some("m")),
            (
                "model_provider = 'mine'",
                Some("mine"),
                "mine/m",
                Some("mine/m"),
            ),
            ("model_provider = 'mine'", Some("openai"), "gpt", None),
            ("model = 'm'", None, "m", Some("m")),
        ] {
            let table: toml::Table = format!("{config}\n{mine}").parse().expect("TOML");
            let setting = model_setting(&table, provider, model);
            assert_eq!(
                setting.as_deref(),
                expected,
                "{config} {provider:?} {model}"
            );
        }
    }
}
