//! `raddle debug models`: the models in the form of Codex's own catalogue.

use std::process::ExitCode;

use anyhow::Result;
use raddle_config::{Override, models};
use raddle_console::Printer;
use raddle_protocol::Model;
use serde_json::{Value, json};

use crate::cli::DebugModels;
use crate::config;
use crate::home::Home;
use crate::log;
use crate::model_list;

/// Prints the models that `model/list` returns. Members of Codex's catalogue about which Raddle
/// knows nothing are left out.
pub(crate) fn run(mut overrides: Vec<Override>, args: DebugModels) -> Result<ExitCode> {
    let home = Home::find()?;
    overrides.extend(args.settings.config);
    let config = config::open(&home, overrides)?;
    let providers = match args.bundled {
        true => Vec::new(),
        false => model_list::default_providers(&config),
    };
    let mut offered = Vec::new();
    for (name, answer) in model_list::ask(&home, &config, providers)? {
        match answer {
            Ok(models) => offered.push((name, models)),
            Err(why) => log::print_line(&format!("raddle: {name}: {why}")),
        }
    }
    let state = config.valid_state();
    let window = state.value("model_context_window");
    let window = window.and_then(toml::Value::as_integer);
    let listed = match config.models(&offered).is_empty() {
        // The list for clients has an entry even then, which says what to configure.
        true => Vec::new(),
        false => models::all(&state, config.user_file(), &offered),
    };
    let rows = listed.iter().enumerate();
    let rows: Vec<Value> = rows.map(|(at, it)| row(at, it, window)).collect();
    let mut printer = Printer::new();
    printer.line(&json!({ "models": rows }).to_string())?;
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn row(at: usize, model: &Model, window: Option<i64>) -> Value {
    let efforts = model.supported_reasoning_efforts.iter();
    let efforts: Vec<Value> = efforts
        .map(|it| json!({ "effort": it.reasoning_effort, "description": it.description }))
        .collect();
    json!({
        "slug": model.id,
        "display_name": model.display_name,
        "description": model.description,
        "default_reasoning_level": model.default_reasoning_effort,
        "supported_reasoning_levels": efforts,
        "visibility": if model.hidden { "hide" } else { "list" },
        "supported_in_api": true,
        "priority": at,
        "additional_speed_tiers": [],
        "service_tiers": [],
        "availability_nux": null,
        "upgrade": null,
        "context_window": window.filter(|_| model.is_default),
        "input_modalities": model.input_modalities,
    })
}
