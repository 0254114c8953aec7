//! `raddle plugin test`: checks a plugin against the contract.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use raddle_config::Override;
use raddle_console::print_lines;
use raddle_plugin::{PluginTest, PluginTestOptions, test_plugin};
use serde_json::{Value, json};

use crate::cli;
use crate::home::Home;
use crate::{agent_deps, app_server, runtime, threads};

pub(super) fn run(overrides: Vec<Override>, args: &cli::PluginTest) -> Result<ExitCode> {
    app_server::disable_core_dumps()?;
    let home = Home::find()?;
    let options = PluginTestOptions {
        approves: args.approve,
        limit: Duration::from_secs(args.timeout),
    };
    let test = runtime::current_thread()?.block_on(async {
        let (_server, starter) = agent_deps::open(&home, overrides, threads::process_starter)?;
        anyhow::Ok(test_plugin(&starter, &args.folder, options).await)
    })?;
    match args.json {
        true => print_lines([as_json(&test).to_string()])?,
        false => print_lines(lines(&test))?,
    }
    Ok(match test.violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Describes a test for people.
fn lines(test: &PluginTest) -> Vec<String> {
    let name = match &test.identity {
        Some((id, version)) => format!("{id} {version}"),
        None => "the plugin".to_owned(),
    };
    let verdict = match test.violations.is_empty() {
        true => "keeps the contract",
        false => "violates the contract",
    };
    let mut lines = vec![format!("{name}: {verdict}")];
    let warnings = test.warnings.iter();
    lines.extend(warnings.map(|it| format!("  warning: {it}")));
    let steps = test.steps.iter();
    lines.extend(steps.map(|it| format!("  {}: {}", it.name, it.outcome)));
    let violations = test.violations.iter();
    lines.extend(violations.map(|it| format!("  violation {}: {}", it.code, it.message)));
    if !test.violations.is_empty() && !test.stderr.trim().is_empty() {
        lines.push("  stderr:".to_owned());
        lines.extend(test.stderr.trim().lines().map(|it| format!("    {it}")));
    }
    lines
}

fn as_json(test: &PluginTest) -> Value {
    let steps = test
        .steps
        .iter()
        .map(|it| json!({ "name": it.name, "outcome": it.outcome }));
    let violations = test
        .violations
        .iter()
        .map(|it| json!({ "code": it.code, "message": it.message }));
    json!({
        "id": test.identity.as_ref().map(|(id, _)| id),
        "version": test.identity.as_ref().map(|(_, version)| version),
        "ok": test.violations.is_empty(),
        "warnings": test.warnings,
        "steps": steps.collect::<Vec<_>>(),
        "violations": violations.collect::<Vec<_>>(),
        "stderr": test.stderr,
    })
}
