//! `raddle plugin test`: checks a plugin against the contract.

mod acts;
mod folders;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use raddle_config::Override;
use raddle_console::print_lines;
use raddle_plugin::{PluginTest, PluginTestOptions, test_plugin};
use raddle_server::AgentDeps;
use serde_json::{Value, json};

use self::acts::TestActs;
use self::folders::TestFolders;
use crate::cli;
use crate::home::Home;
use crate::rules::RuleStore;
use crate::{agent_deps, app_server, runtime, threads};

pub(super) fn run(overrides: Vec<Override>, args: &cli::PluginTest) -> Result<ExitCode> {
    app_server::disable_core_dumps()?;
    let home = Home::find()?;
    let folders = TestFolders::create()?;
    let test = runtime::current_thread()?.block_on(async {
        let select = |deps: &AgentDeps, rules: RuleStore| {
            let tools = threads::built_in_tools(deps, rules.clone());
            (threads::process_starter(deps, rules), tools)
        };
        let (_server, (starter, tools)) = agent_deps::open(&home, overrides, select)?;
        let options = PluginTestOptions {
            approves: args.approve,
            limit: Duration::from_secs(args.timeout),
            home: folders.home(),
            acts: Arc::new(TestActs::new(tools, &folders.work())),
        };
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
