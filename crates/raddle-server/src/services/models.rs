//! The models a turn may use: those that the configuration names, and those that its providers say they have.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use raddle_protocol::{InputModality, Model, ReasoningEffortOption};

use super::config::State;
use super::providers::{ModelChoice, choose};
use super::vendors::OfferedModel;

/// Reasoning efforts that every provider's names can be mapped to.
const EFFORTS: &[(&str, &str)] = &[
    ("low", "Answers soon, thinks little."),
    ("medium", "Thinks as long as most work needs."),
    ("high", "Thinks long, for hard work."),
];

/// What providers say they have, each by its name.
pub(crate) type ModelsByProvider = [(String, Arc<[OfferedModel]>)];

/// The models: those of the configuration, the default first, then what the providers have. Never empty: clients need
/// something to show, so without configuration there is one entry that says what to do with the user's file.
pub(crate) fn all(config: &State, user_file: &Path, known: &ModelsByProvider) -> Vec<Model> {
    let effort = config.text("model_reasoning_effort").unwrap_or("medium");
    let usual = usual_provider(config);
    let mut seen = HashSet::new();
    let mut models = Vec::new();
    for entry in entries(config, known) {
        let id = id(usual, entry.provider, entry.model);
        // Where names have slashes, a model of another provider's could not be told from theirs.
        let is_meant = entry.is_configured
            || choose(&config.merged, usual, Some(&id)).provider == entry.provider;
        if is_meant && seen.insert(id.clone()) {
            let shown = entry.name.unwrap_or(&id);
            models.push(model(&id, shown, entry.description(), effort));
        }
    }
    if models.is_empty() {
        let description = format!(
            "Set `model` in {}, or start with -c model=NAME.",
            user_file.display()
        );
        models.push(model(
            "unconfigured",
            "No model configured",
            description,
            effort,
        ));
    }
    models[0].is_default = true;
    models
}

/// A model of a provider's.
#[derive(Debug)]
pub(crate) struct ModelEntry<'a> {
    pub(crate) provider: Option<&'a str>,
    /// As it is named there.
    pub(crate) model: &'a str,
    /// Its name for people.
    pub(crate) name: Option<&'a str>,
    pub(crate) is_configured: bool,
}

impl ModelEntry<'_> {
    pub(crate) fn description(&self) -> String {
        match (self.is_configured, self.provider) {
            (true, Some(provider)) => format!("Configured, from provider {provider}."),
            (false, Some(provider)) => format!("From provider {provider}."),
            (_, None) => "Configured.".to_owned(),
        }
    }
}

/// Those of the configuration, the default first, then what the providers have; a model may be there twice.
pub(crate) fn entries<'a>(config: &'a State, known: &'a ModelsByProvider) -> Vec<ModelEntry<'a>> {
    let configured = configured(config).into_iter().map(|it| ModelEntry {
        provider: it.provider,
        model: it.model.unwrap_or_default(),
        name: None,
        is_configured: true,
    });
    let offered = known.iter().flat_map(|(provider, offered)| {
        offered.iter().map(move |it| ModelEntry {
            provider: Some(provider.as_str()),
            model: &it.id,
            name: it.name.as_deref(),
            is_configured: false,
        })
    });
    configured.chain(offered).collect()
}

/// Who is asked unless someone says something else.
pub(crate) fn usual_provider(config: &State) -> Option<&str> {
    choose(&config.merged, None, config.text("model")).provider
}

/// Whether the configuration names a model of the usual provider's, which the list tells without its provider.
pub(crate) fn is_usual(config: &State, name: &str) -> bool {
    let usual = usual_provider(config);
    let mut choices = configured(config).into_iter();
    choices.any(|it| it.provider == usual && it.model == Some(name))
}

/// The models that the configuration names.
fn configured(config: &State) -> Vec<ModelChoice<'_>> {
    let named = ["model", "review_model"].iter();
    let named = named.filter_map(|key| config.text(key));
    let mut choices: Vec<ModelChoice<'_>> = named
        .map(|name| choose(&config.merged, None, Some(name)))
        .collect();
    let profiles = config.value("profiles").and_then(toml::Value::as_table);
    for profile in profiles.into_iter().flat_map(toml::Table::values) {
        let text = |key: &str| profile.get(key).and_then(toml::Value::as_str);
        if let Some(name) = text("model") {
            choices.push(choose(&config.merged, text("model_provider"), Some(name)));
        }
    }
    choices
}

/// What a client says to mean a model: its name, and before it the provider if that is not the usual one.
fn id(usual: Option<&str>, provider: Option<&str>, name: &str) -> String {
    match provider.filter(|it| usual != Some(it)) {
        Some(provider) => format!("{provider}/{name}"),
        None => name.to_owned(),
    }
}

fn model(name: &str, display_name: &str, description: String, effort: &str) -> Model {
    let option = |(effort, description): &(&str, &str)| ReasoningEffortOption {
        reasoning_effort: (*effort).to_owned(),
        description: (*description).to_owned(),
    };
    Model {
        id: name.to_owned(),
        model: name.to_owned(),
        display_name: display_name.to_owned(),
        description,
        hidden: false,
        is_default: false,
        supported_reasoning_efforts: EFFORTS.iter().map(option).collect(),
        default_reasoning_effort: effort.to_owned(),
        input_modalities: vec![InputModality::Text, InputModality::Image],
        additional_speed_tiers: Vec::new(),
        availability_nux: None,
        available_access_programs: None,
        default_service_tier: None,
        model_specialty: None,
        multi_agent_version: None,
        service_tiers: Vec::new(),
        supports_personality: false,
        upgrade: None,
        upgrade_info: None,
    }
}
