//! The provider for a model that a client names for an existing thread.

use raddle_config::providers::{ModelChoice, check_prefix, choose};
use raddle_config::{State, models};
use raddle_core::{SettingsChange, ThreadId};

use super::folders;
use crate::services::ServerState;
use crate::wire_error::WireError;

/// Splits a `vendor/model` name in a change into provider and model, and adds the real paths of its
/// folders. So the thread has the same form of settings as at its start.
pub(crate) async fn routed(
    state: &ServerState,
    id: ThreadId,
    change: SettingsChange,
) -> Result<SettingsChange, WireError> {
    let mut change = folders::resolved(state, id, change).await?;
    let Some(model) = change.model.clone().flatten() else {
        return Ok(change);
    };
    let config = state.config_now().await?;
    if !model.contains('/') {
        if change.provider.is_none() {
            change.provider = default_provider_for(state, &config, id, &model)
                .await
                .map(Some);
        }
        return Ok(change);
    }
    let target = if let Some(provider) = &change.provider {
        at_vendor(config.table(), provider.as_deref(), &model)
    } else {
        // A thread that cannot be read rejects the change itself, and says why.
        let Ok(peek) = state.threads.peek(id).await else {
            return Ok(change);
        };
        let settings = peek.thread.settings();
        let current = ModelChoice {
            provider: settings.provider.as_deref(),
            model: settings.model.as_deref(),
        };
        let target = other_vendor(config.table(), current, &model);
        if let (None, Some(provider)) = (&target, current.provider)
            && current.model != Some(model.as_str())
        {
            check_prefix(config.table(), provider, &model, state.config.user_file())
                .map_err(|error| WireError::Refused(error.to_string().into()))?;
        }
        target
    };
    if let Some((provider, name)) = target {
        change.provider = Some(Some(provider));
        change.model = Some(Some(name));
    }
    Ok(change)
}

/// Returns the default provider, for a thread of another provider that gets a model of the default
/// one: `model/list` shows such a name without its provider.
async fn default_provider_for(
    state: &ServerState,
    config: &State,
    id: ThreadId,
    model: &str,
) -> Option<String> {
    let default_provider = models::default_provider(config)?;
    if !models::is_of_default_provider(config, model)
        && !state.catalogue.has(default_provider, model)
    {
        return None;
    }
    let peek = state.threads.peek(id).await.ok()?;
    let settings = peek.thread.settings();
    let is_elsewhere = settings
        .provider
        .as_deref()
        .is_some_and(|it| it != default_provider);
    let is_new = settings.model.as_deref() != Some(model);
    (is_elsewhere && is_new).then(|| default_provider.to_owned())
}

/// Returns the vendor in another model's name, and the name there. Clients repeat a thread's own
/// model with every turn, which changes nothing; any other name has the form of `model/list`.
fn other_vendor(
    config: &toml::Table,
    current: ModelChoice<'_>,
    model: &str,
) -> Option<(String, String)> {
    if current.model == Some(model) {
        return None;
    }
    at_vendor(config, None, model).or_else(|| at_vendor(config, current.provider, model))
}

fn at_vendor(
    config: &toml::Table,
    provider: Option<&str>,
    model: &str,
) -> Option<(String, String)> {
    let choice = choose(config, provider, Some(model));
    let name = choice.model.filter(|it| *it != model)?;
    Some((choice.provider?.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_prefix_switches_the_provider_unless_the_model_is_the_threads_own() {
        let sections = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n";
        for (config, own, model, expected) in [
            // A name that the list shows with a vendor selects that vendor, whatever the thread's
            // own is.
            (
                "model = 'openai/gpt'",
                ("anthropic", "claude"),
                "mine/m",
                Some(("mine", "m")),
            ),
            (
                "model = 'openai/gpt'",
                ("mine", "m"),
                "anthropic/claude",
                Some(("anthropic", "claude")),
            ),
            (
                "model = 'openai/gpt'",
                ("openrouter", "anthropic/claude"),
                "mine/openai/m",
                Some(("mine", "openai/m")),
            ),
            // The thread's own model stays with its provider.
            (
                "model = 'openai/gpt'",
                ("openrouter", "anthropic/claude"),
                "anthropic/claude",
                None,
            ),
            ("model = 'openai/gpt'", ("mine", "m"), "m", None),
            ("model = 'openai/gpt'", ("mine", "m"), "nobody/m", None),
            // Where the configured provider has names with slashes, the thread's provider decides.
            (
                "model_provider = 'mine'",
                ("openai", "gpt"),
                "anthropic/claude",
                Some(("anthropic", "claude")),
            ),
            (
                "model_provider = 'mine'",
                ("openrouter", "m"),
                "anthropic/claude",
                None,
            ),
        ] {
            let table: toml::Table = format!("{config}\n{sections}").parse().expect("TOML");
            let (provider, model_name) = own;
            let current_choice = ModelChoice {
                provider: Some(provider),
                model: Some(model_name),
            };
            let selected = other_vendor(&table, current_choice, model);
            let expected = expected.map(|(vendor, name)| (vendor.to_owned(), name.to_owned()));
            assert_eq!(selected, expected, "{config} {current_choice:?} {model}");
        }
    }
}
