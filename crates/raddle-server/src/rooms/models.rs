//! The models a turn may use, as far as the configuration names them.

use std::path::Path;

use raddle_protocol::{InputModality, Model, ReasoningEffortOption};

use super::config::State;

/// Reasoning efforts that every provider's names can be mapped to.
const EFFORTS: &[(&str, &str)] = &[
    ("low", "Answers soon, thinks little."),
    ("medium", "Thinks as long as most work needs."),
    ("high", "Thinks long, for hard work."),
];

/// The configured models, the default first. Never empty: clients need something to show, so
/// without configuration there is one entry that says what to do with the user's file.
pub(crate) fn configured(config: &State, user_file: &Path) -> Vec<Model> {
    let mut names: Vec<&str> = ["model", "review_model"]
        .iter()
        .filter_map(|key| config.text(key))
        .collect();
    let profiles = config
        .merged
        .get("profiles")
        .and_then(toml::Value::as_table);
    for profile in profiles.into_iter().flat_map(toml::Table::values) {
        names.extend(profile.get("model").and_then(toml::Value::as_str));
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));

    let effort = config.text("model_reasoning_effort").unwrap_or("medium");
    let provider = config.text("model_provider");
    let mut models: Vec<Model> = names
        .iter()
        .map(|name| {
            let description = match provider {
                Some(provider) => format!("Configured, from provider {provider}."),
                None => "Configured.".to_owned(),
            };
            model(name, name, description, effort)
        })
        .collect();
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
