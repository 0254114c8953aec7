//! Whom a client means that names another model for a thread that is there.

use raddle_core::{SettingsChange, ThreadId};

use super::folders;
use crate::services::config::State;
use crate::services::providers::{ModelChoice, choose};
use crate::services::{ServerState, models};
use crate::wire_error::WireError;

/// A change whose model stands as its provider names it, with the real paths of its folders. So the thread knows whom it
/// asks and where it works, as it does when it starts.
pub(crate) async fn routed(
    rooms: &ServerState,
    id: ThreadId,
    change: SettingsChange,
) -> Result<SettingsChange, WireError> {
    let mut change = folders::resolved(rooms, id, change).await?;
    let Some(model) = change.model.clone().flatten() else {
        return Ok(change);
    };
    let config = rooms.config_now().await?;
    if !model.contains('/') {
        if change.provider.is_none() {
            change.provider = usual(rooms, &config, id, &model).await.map(Some);
        }
        return Ok(change);
    }
    let elsewhere = if let Some(provider) = &change.provider {
        at_vendor(&config.merged, provider.as_deref(), &model)
    } else {
        // A thread that cannot be looked at refuses the change itself, and says why.
        let Ok(peek) = rooms.threads.peek(id).await else {
            return Ok(change);
        };
        let settings = peek.thread.settings();
        let now = ModelChoice {
            provider: settings.provider.as_deref(),
            model: settings.model.as_deref(),
        };
        elsewhere(&config.merged, now, &model)
    };
    if let Some((provider, name)) = elsewhere {
        change.provider = Some(Some(provider));
        change.model = Some(Some(name));
    }
    Ok(change)
}

/// The usual provider, for a thread that is with another and gets a model that `model/list` tells of the usual one: such
/// a name stands there alone.
async fn usual(rooms: &ServerState, config: &State, id: ThreadId, model: &str) -> Option<String> {
    let usual = models::usual_provider(config)?;
    if !models::is_usual(config, model) && !rooms.catalogue.has(usual, model) {
        return None;
    }
    let peek = rooms.threads.peek(id).await.ok()?;
    let now = peek.thread.settings();
    let is_elsewhere = now.provider.as_deref().is_some_and(|it| it != usual);
    let is_new = now.model.as_deref() != Some(model);
    (is_elsewhere && is_new).then(|| usual.to_owned())
}

/// The vendor that a name leads away to, and the name there. Clients repeat a thread's own model with every turn, which
/// leads nowhere; another is meant as `model/list` tells it.
fn elsewhere(config: &toml::Table, now: ModelChoice<'_>, model: &str) -> Option<(String, String)> {
    if now.model == Some(model) {
        return None;
    }
    at_vendor(config, None, model).or_else(|| at_vendor(config, now.provider, model))
}

fn at_vendor(
    config: &toml::Table,
    provider: Option<&str>,
    model: &str,
) -> Option<(String, String)> {
    let chosen = choose(config, provider, Some(model));
    let name = chosen.model.filter(|it| *it != model)?;
    Some((chosen.provider?.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_before_another_name_is_meant_and_the_threads_own_name_leads_nowhere() {
        let sections = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n";
        for (config, now, model, wanted) in [
            // What the list tells of others is theirs, wherever the thread is.
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
            // What a thread has already stays where it is.
            (
                "model = 'openai/gpt'",
                ("openrouter", "anthropic/claude"),
                "anthropic/claude",
                None,
            ),
            ("model = 'openai/gpt'", ("mine", "m"), "m", None),
            ("model = 'openai/gpt'", ("mine", "m"), "nobody/m", None),
            // Where the configured provider has such names, it is the thread's that decides.
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
            let (provider, current) = now;
            let now = ModelChoice {
                provider: Some(provider),
                model: Some(current),
            };
            let found = elsewhere(&table, now, model);
            let wanted = wanted.map(|(vendor, name)| (vendor.to_owned(), name.to_owned()));
            assert_eq!(found, wanted, "{config} {now:?} {model}");
        }
    }
}
