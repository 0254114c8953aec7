//! `raddle config`: the configuration without a server.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, ensure};
use raddle_config::{ConfigValue, ConfigWriteError, Configuration, Override, WrittenValue};
use raddle_console::{Printer, sanitize};
use raddle_server::config_problems;
use serde_json::{Value, json};

use crate::cli::{ConfigCommand, ConfigGet, ConfigList, SettingArgs};
use crate::home::Home;
use crate::log;

pub(crate) fn run(mut overrides: Vec<Override>, command: ConfigCommand) -> Result<ExitCode> {
    let opened = |settings: &SettingArgs| {
        overrides.extend(settings.config.iter().cloned());
        open(&Home::find()?, overrides)
    };
    match command {
        ConfigCommand::List(args) => list(&opened(&args.settings)?, &args),
        ConfigCommand::Get(args) => get(&opened(&args.settings)?, &args),
        ConfigCommand::Set(it) => {
            let config = opened(&it.settings)?;
            let problems_before = config_problems(&config);
            let written = config.set(&it.key, &it.value);
            let written = written.map_err(|error| not_written(&config, error))?;
            let reported = report_written(&it.key, "set", &written);
            // Values of the right type may still be invalid, or not fit others.
            let mut problems = config_problems(&config);
            problems.retain(|it| !problems_before.contains(it));
            for problem in problems {
                log::print_line(&format!(
                    "raddle: warning: {problem}; until it is corrected, threads or their commands \
                     are rejected"
                ));
            }
            reported
        }
        ConfigCommand::Unset(it) => {
            let config = opened(&it.settings)?;
            ensure!(
                config.is_in_user_file(&it.key)?,
                not_in_file(&config, &it.key)
            );
            let written = config.unset(&it.key);
            let mut written = written.map_err(|error| not_written(&config, error))?;
            // The key was removed, so a warning that it is unknown is of no use.
            written.warning = None;
            report_written(&it.key, "removed", &written)
        }
        ConfigCommand::Path(args) => {
            let paths = Home::find()?.paths();
            let path = match args.system {
                true => paths.system_config,
                false => paths.user_config,
            };
            print([path.display().to_string()])
        }
        ConfigCommand::Schema => print([schema()?]),
    }
}

/// Returns the schema as text, as it is written to files.
pub(crate) fn schema() -> Result<String> {
    serde_json::to_string_pretty(&raddle_config::schema()).context("the schema cannot be written")
}

/// Opens the configuration of a home, with the overrides of this process.
pub(crate) fn open(home: &Home, overrides: Vec<Override>) -> Result<Configuration> {
    let opened = Configuration::open(&home.paths(), overrides);
    opened.context("the configuration cannot be used; fix that file, or move it away")
}

fn list(config: &Configuration, args: &ConfigList) -> Result<ExitCode> {
    let (values, warnings) = (config.values(), config.warnings());
    if args.json {
        let value = |it: &ConfigValue| json!({ "key": it.key, "value": to_json(&it.value), "origin": it.origin });
        let values: Vec<Value> = values.iter().map(value).collect();
        return print([json!({ "values": values, "warnings": warnings }).to_string()]);
    }
    let mut printer = Printer::new();
    for it in &values {
        let line = format!("{} = {}", it.key, it.value);
        let line = match args.origin {
            true => format!("{line}  # {}", it.origin),
            false => line,
        };
        printer.line(&sanitize(&line))?;
    }
    printer.flush()?;
    for warning in &warnings {
        log::print_line(&format!("raddle: warning: {warning}"));
    }
    if values.is_empty() {
        log::print_line(
            "raddle: nothing is configured; `raddle init` writes a first configuration",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn get(config: &Configuration, args: &ConfigGet) -> Result<ExitCode> {
    let key = &args.key;
    let Some(value) = config.get(key).map_err(|error| anyhow!(error))? else {
        let usual = config.default_of(key).filter(|it| !it.is_empty());
        let usual = usual.map(|it| format!("; without it: {it}"));
        let odd = config.key_warning(key).map(|it| format!("; {it}"));
        let more = odd.or(usual).unwrap_or_default();
        log::print_line(&format!("raddle: `{key}` is not set{more}"));
        return Ok(ExitCode::FAILURE);
    };
    let printed = print([match (&value, args.json) {
        (value, true) => to_json(value).to_string(),
        (toml::Value::String(text), false) => text.clone(),
        (toml::Value::Table(table), false) => table.to_string().trim_end().to_owned(),
        (value, false) => value.to_string(),
    }])?;
    if let Some(wrong) = config.invalid_value(key) {
        log::print_line(&format!("raddle: warning: {wrong}"));
    }
    Ok(printed)
}

/// Says that the user's file does not set a key, with the key that may be meant or a command that
/// shows the others.
fn not_in_file(config: &Configuration, key: &str) -> String {
    let advice = config.key_warning(key).unwrap_or_else(|| {
        "`raddle config list --origin` shows where each value comes from".to_owned()
    });
    let file = config.user_file().display();
    format!("`{key}` is not set in {file}, so nothing was removed; {advice}")
}

/// Describes a failed write, with the file and advice if the system refused it.
pub(crate) fn not_written(config: &Configuration, error: ConfigWriteError) -> anyhow::Error {
    match error {
        ConfigWriteError::Io(error) => anyhow!(
            "cannot write {}: {error}; give this user write access, or name another home with RADDLE_HOME",
            config.user_file().display()
        ),
        error => anyhow!(error),
    }
}

fn report_written(key: &str, what: &str, written: &WrittenValue) -> Result<ExitCode> {
    let file = &written.file;
    log::print_line(&format!("raddle: {what} `{key}` in {file}"));
    if let Some(warning) = &written.warning {
        let line =
            format!("raddle: warning: {warning}; `raddle config unset {key}` removes it again");
        log::print_line(&line);
    }
    if let Some(by) = &written.overridden {
        let line = format!("raddle: warning: {by} has another value, which takes precedence");
        log::print_line(&line);
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(value: &toml::Value) -> Value {
    // Every TOML value has a form in JSON.
    serde_json::to_value(value).unwrap_or_default()
}

fn print(lines: impl IntoIterator<Item = String>) -> Result<ExitCode> {
    let mut printer = Printer::new();
    for line in lines {
        printer.line(&sanitize(&line))?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}
