//! The models that a turn may use: those that the configuration names, and those that its providers
//! offer.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use raddle_protocol::{InputModality, Model, ReasoningEffortOption};

use crate::config::State;
use crate::providers::{ModelChoice, choose};
use crate::vendors::OfferedModel;

/// Reasoning efforts that map to every provider's names.
const EFFORTS: &[(&str, &str)] = &[
    ("low", "Fast responses with little reasoning."),
    ("medium", "Reasoning for most work."),
    ("high", "Deep reasoning for hard work."),
];

/// The models that providers offer, each list with its provider's name.
pub type ModelsByProvider = [(String, Arc<[OfferedModel]>)];

/// Returns the models: those of the configuration, the default first, then those of the providers.
/// Never empty: clients need an entry to show, so without configuration there is one that says what
/// to configure.
pub fn all(config: &State, user_file: &Path, known: &ModelsByProvider) -> Vec<Model> {
    let effort = config.text("model_reasoning_effort").unwrap_or("medium");
    let default_name = default_provider(config);
    let mut seen = HashSet::new();
    let mut models = Vec::new();
    for entry in entries(config, known) {
        let id = id(default_name, entry.provider, entry.model);
        // Where names contain slashes, such an id could also be a model of the default provider.
        let is_unambiguous = entry.is_configured
            || choose(&config.merged, default_name, Some(&id)).provider == entry.provider;
        if is_unambiguous && seen.insert(id.clone()) {
            let display_name = entry.name.unwrap_or(&id);
            models.push(model(&id, display_name, entry.description(), effort));
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

/// A model of a provider.
#[derive(Debug)]
pub(crate) struct ModelEntry<'a> {
    pub(crate) provider: Option<&'a str>,
    /// Its name at the provider.
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

/// Returns the models of the configuration, the default first, then those of the providers; may
/// contain duplicates.
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

/// Returns the provider that threads use by default.
pub fn default_provider(config: &State) -> Option<&str> {
    choose(&config.merged, None, config.text("model")).provider
}

/// Whether the configuration names a model of the default provider, which the list shows without
/// its provider.
pub fn is_of_default_provider(config: &State, name: &str) -> bool {
    let default_name = default_provider(config);
    let mut choices = configured(config).into_iter();
    choices.any(|it| it.provider == default_name && it.model == Some(name))
}

/// Returns the models that the configuration names.
fn configured(config: &State) -> Vec<ModelChoice<'_>> {
    let names = ["model", "review_model"].iter();
    let names = names.filter_map(|key| config.text(key));
    let mut choices: Vec<ModelChoice<'_>> = names
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

/// Returns the id of a model for clients: its name, prefixed with the provider if that is not the
/// default.
fn id(default_provider: Option<&str>, provider: Option<&str>, name: &str) -> String {
    match provider.filter(|it| default_provider != Some(it)) {
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
