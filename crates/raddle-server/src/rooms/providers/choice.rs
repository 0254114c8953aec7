//! Whom a model is asked of. `vendor/name` names both.

use super::presets;
use crate::rooms::config::said;

/// A provider, and a model as it is named there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice<'a> {
    pub(crate) provider: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
}

/// What is meant by a provider and a model, either of which may not be said. A name like `vendor/name` leads to
/// that vendor, unless the provider that would be asked otherwise has such names itself.
pub(crate) fn choose<'a>(
    config: &'a toml::Table,
    provider: Option<&'a str>,
    model: Option<&'a str>,
) -> Choice<'a> {
    let usual = provider.or_else(|| said::text(config, "model_provider"));
    if usual.is_some_and(|it| has_slashes(config, it)) {
        return Choice {
            provider: usual,
            model,
        };
    }
    let at_vendor = |model: &'a str| {
        let (vendor, name) = model.split_once('/')?;
        (!name.is_empty() && is_known(config, vendor)).then_some((vendor, name))
    };
    if let Some((vendor, name)) = model.and_then(at_vendor) {
        return Choice {
            provider: Some(vendor),
            model: Some(name),
        };
    }
    // Who says only a name means it where the configured model is.
    let configured = || said::text(config, "model").and_then(at_vendor);
    Choice {
        provider: usual.or_else(|| Some(configured()?.0)),
        model,
    }
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
        ] {
            let table: toml::Table = format!("{config}\n{mine}").parse().expect("TOML");
            let found = choose(&table, provider, model);
            let (provider, model) = wanted;
            let wanted = Choice {
                provider,
                model: Some(model),
            };
            assert_eq!(found, wanted, "{config} {found:?}");
        }
    }
}
