//! `raddle mcp test`: starts MCP servers as a thread in the current folder would.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use raddle_config::{McpServer, McpServers, Override, permissions};
use raddle_console::print_lines;
use raddle_core::Settings;
use raddle_plugin::{ServerFailure, ServerOffer, ServerTest};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::subscriber::{NoSubscriber, set_default};

use crate::cli::McpTest;
use crate::home::Home;
use crate::{agent_deps, app_server, config, log, runtime, threads};

pub(super) fn run(overrides: &[Override], args: &McpTest) -> Result<ExitCode> {
    app_server::disable_core_dumps()?;
    let all = overrides.iter().chain(&args.settings.config).cloned();
    let overrides: Vec<Override> = all.collect();
    let home = Home::find()?;
    let settings = settings(&home, &overrides)?;
    let tests = runtime::current_thread()?.block_on(async {
        let (_server, (registry, servers)) = agent_deps::open(&home, overrides, |deps, rules| {
            let registry = threads::mcp_servers(&home.state, deps, rules);
            (registry, deps.mcp.current())
        })?;
        let selected = selected(&servers, args.name.as_deref())?;
        // A failure is a result here, and is not logged as well.
        let is_logged = std::env::var_os("RADDLE_LOG").is_some();
        let _silence = (!is_logged).then(|| set_default(NoSubscriber::default()));
        let mut running = JoinSet::new();
        for server in selected {
            let (registry, settings) = (registry.clone(), settings.clone());
            running.spawn(async move { registry.test(&settings, &server).await });
        }
        let mut tests = running.join_all().await;
        if args.name.is_none() {
            tests.extend(servers.problems.into_iter().map(|problem| ServerTest {
                name: problem.name,
                duration: Duration::ZERO,
                outcome: Err(ServerFailure {
                    cause: problem.text,
                    advice: "correct its section in config.toml",
                }),
            }));
        }
        tests.sort_by(|first, second| first.name.cmp(&second.name));
        anyhow::Ok(tests)
    })?;
    match (args.json, &args.name, tests.first()) {
        (true, Some(_), Some(test)) => print_lines([as_json(test).to_string()])?,
        (true, ..) => print_lines([tests.iter().map(as_json).collect::<Value>().to_string()])?,
        (false, _, None) => log::print_line("raddle: no MCP server is enabled"),
        (false, ..) => print_lines(tests.iter().flat_map(lines))?,
    }
    Ok(match tests.iter().all(|it| it.outcome.is_ok()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns the settings of a new thread in the current folder, as far as servers depend on them.
fn settings(home: &Home, overrides: &[Override]) -> Result<Settings> {
    let config = config::open(home, overrides.to_vec())?;
    let state = config.state();
    let effective = state.with_request(None);
    permissions::check_mode(&effective)?;
    let choice = permissions::of_config(&effective, None)?;
    let cwd = std::env::current_dir().context("there is no current folder; go to one")?;
    let mut settings = Settings {
        cwd: cwd.to_string_lossy().into_owned(),
        sandbox: choice.sandbox,
        ..Settings::default()
    };
    let folders = settings.folders().filter_map(|folder| {
        let real = std::fs::canonicalize(Path::new(folder)).ok()?;
        Some((folder.clone(), real.to_string_lossy().into_owned()))
    });
    settings.real_paths = folders.collect();
    Ok(settings)
}

/// Returns the servers to test: the named one, or all that are enabled.
fn selected(all: &McpServers, name: Option<&str>) -> Result<Vec<Arc<McpServer>>> {
    let Some(name) = name else {
        let enabled = all.servers.iter().filter(|it| it.enabled);
        return Ok(enabled.cloned().collect());
    };
    if let Some(problem) = all.problems.iter().find(|it| it.name == name) {
        bail!("{problem}");
    }
    match all.servers.iter().find(|it| it.name == name) {
        Some(server) => Ok(vec![server.clone()]),
        None => bail!("no MCP server is named `{name}`; `raddle mcp list` shows those that exist"),
    }
}

/// Describes a test for people.
fn lines(test: &ServerTest) -> Vec<String> {
    let ServerTest {
        name,
        duration,
        outcome,
    } = test;
    let seconds = duration.as_secs_f64();
    let mut lines = Vec::new();
    match outcome {
        Ok(ServerOffer {
            revision,
            implementation,
            tools,
            resources,
            prompts,
        }) => {
            lines.push(format!("{name}: connected in {seconds:.1} s"));
            if let Some((name, version)) = implementation {
                lines.push(format!("  server: {name} {version}"));
            }
            if let Some(revision) = revision {
                lines.push(format!("  revision: {revision}"));
            }
            lines.push(format!("  tools: {}", tools.len()));
            lines.extend(tools.iter().map(|it| format!("    {it}")));
            lines.push(format!("  resources: {resources}"));
            lines.push(format!("  prompts: {prompts}"));
        }
        Err(ServerFailure { cause, advice }) => {
            lines.push(format!("{name}: failed after {seconds:.1} s"));
            let mut cause = cause.lines();
            lines.push(format!("  cause: {}", cause.next().unwrap_or_default()));
            lines.extend(cause.map(|it| format!("    {it}")));
            lines.push(format!("  fix: {advice}"));
        }
    }
    lines
}

fn as_json(test: &ServerTest) -> Value {
    let seconds = test.duration.as_secs_f64();
    match &test.outcome {
        Ok(offer) => json!({
            "name": test.name,
            "ok": true,
            "seconds": seconds,
            "server": offer.implementation.as_ref().map(|(name, version)| {
                json!({ "name": name, "version": version })
            }),
            "revision": offer.revision,
            "tools": offer.tools,
            "resources": offer.resources,
            "prompts": offer.prompts,
        }),
        Err(failure) => json!({
            "name": test.name,
            "ok": false,
            "seconds": seconds,
            "error": failure.cause,
            "fix": failure.advice,
        }),
    }
}
