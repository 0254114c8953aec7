//! Whom a model is asked of. `vendor/name` names both.

use super::presets;
use crate::services::config::effective;

/// A provider, and a model as it is named there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelChoice<'a> {
    pub(crate) provider: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
}

/// What is meant by a provider and a model, either of which may not be said. A name like `vendor/name` leads to
/// that vendor, unless the provider that would be asked otherwise has such names itself.
pub(crate) fn choose<'a>(
    config: &'a toml::Table,
    provider: Option<&'a str>,
    model: Option<&'a str>,
) -> ModelChoice<'a> {
    let usual = provider.or_else(|| effective::text(config, "model_provider"));
    if usual.is_some_and(|it| has_slashes(config, it)) {
        return ModelChoice {
            provider: usual,
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
    // Who says only a name means it where the configured model is. A vendor that nobody knows is not only a name, but
    // where names have slashes.
    let is_name =
        |vendor: &str| model.is_none_or(|it| !it.contains('/')) || has_slashes(config, vendor);
    let configured = || effective::text(config, "model").and_then(at_vendor);
    let configured = || configured().map(|it| it.0).filter(|it| is_name(it));
    ModelChoice {
        provider: usual.or_else(configured),
        model,
    }
}

/// What to write as `model`, and nothing beside it, to mean a model of a provider's. Nothing if that cannot be said so:
/// where `model_provider` names one whose models have slashes in their names, every text is a name of its own.
pub(crate) fn spelled(config: &toml::Table, provider: Option<&str>, model: &str) -> Option<String> {
    let wanted = ModelChoice {
        provider,
        model: Some(model),
    };
    let whole = provider.map(|it| format!("{it}/{model}"));
    let mut spellings = whole.into_iter().chain([model.to_owned()]);
    spellings.find(|text| {
        let mut config = config.clone();
        config.insert("model".to_owned(), text.as_str().into());
        choose(&config, None, Some(text)) == wanted
    })
}

fn section<'a>(config: &'a toml::Table, name: &str) -> Option<&'a toml::Value> {
    config.get("model_providers")?.get(name)
}

fn is_known(config: &toml::Table, name: &str) -> bool {
    section(config, name).is_some() || presets::named(name).is_some()
}

/// Whether a provider's models may have slashes in their names: of one that the user made, nobody knows.
fn has_slashes(config: &toml::Table, name: &str) -> bool {
    let is_own = section(config, name).is_some_and(|it| it.get("base_url").is_some());
    is_own || presets::named(name).is_none_or(|it| it.has_slashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_before_the_name_is_asked_unless_another_has_such_names() {
        let mine = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n";
        for (config, provider, model, wanted) in [
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
            // A thread that is with one vendor goes on with another.
            (
                "",
                Some("openai"),
                Some("anthropic/claude"),
                (Some("anthropic"), "claude"),
            ),
            // A broker, an engine and a provider of the user's own name models as they like.
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
            // A vendor that nobody knows is not taken for a name where names have no slashes.
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
        ] {
            let table: toml::Table = format!("{config}\n{mine}").parse().expect("TOML");
            let found = choose(&table, provider, model);
            let (provider, model) = wanted;
            let wanted = ModelChoice {
                provider,
                model: Some(model),
            };
            assert_eq!(found, wanted, "{config} {found:?}");
        }
    }

    #[test]
    fn what_is_spelled_means_that_model_and_no_other() {
        let mine = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n";
        for (config, provider, model, wanted) in [
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
            // All of it would be a name of theirs.
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
            let found = spelled(&table, provider, model);
            assert_eq!(found.as_deref(), wanted, "{config} {provider:?} {model}");
        }
    }
}
