//! `raddle mcp`: the MCP servers of the configuration, without a server.

mod add;
mod login;
mod test;
mod view;

use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use raddle_config::{Configuration, McpServers, Override, WrittenValue};
use raddle_console::print_lines;
use serde_json::Value;

use crate::cli::{McpCommand, McpGet, McpList, McpRemove, SettingArgs};
use crate::config;
use crate::home::Home;
use crate::log;

pub(crate) fn run(overrides: Vec<Override>, command: McpCommand) -> Result<ExitCode> {
    let opened = |settings: &SettingArgs| {
        let all = overrides.iter().chain(&settings.config).cloned();
        config::open(&Home::find()?, all.collect())
    };
    match command {
        McpCommand::Add(args) => add::run(&opened(&args.settings)?, &args),
        McpCommand::List(args) => list(&opened(&args.settings)?, &args),
        McpCommand::Get(args) => get(&opened(&args.settings)?, &args),
        McpCommand::Remove(args) => remove(&opened(&args.settings)?, &args),
        McpCommand::Test(args) => test::run(&overrides, &args),
        McpCommand::Login(args) => login::log_in(&overrides, &args),
        McpCommand::Logout(args) => login::log_out(&overrides, &args),
    }
}

fn list(config: &Configuration, args: &McpList) -> Result<ExitCode> {
    let McpServers { servers, problems } = config.mcp_servers();
    match args.json {
        true => {
            let servers: Value = servers.iter().map(|it| view::json(it)).collect();
            print_lines([servers.to_string()])?;
        }
        false => print_lines(view::table(&servers))?,
    }
    for problem in &problems {
        log::print_line(&format!("raddle: warning: {problem}"));
    }
    if let Some(what) = misplaced_value(config) {
        log::print_line(&format!("raddle: warning: {what}"));
    } else if servers.is_empty() && problems.is_empty() {
        log::print_line(
            "raddle: no MCP server is configured; `raddle mcp add NAME -- COMMAND` adds a program, \
             and `raddle mcp add NAME --url URL` an address",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what is wrong if the whole of `mcp_servers` is not a table.
fn misplaced_value(config: &Configuration) -> Option<String> {
    let value = config.get("mcp_servers").ok().flatten()?;
    match value.is_table() {
        true => None,
        false => config.invalid_value("mcp_servers"),
    }
}

fn get(config: &Configuration, args: &McpGet) -> Result<ExitCode> {
    let McpServers { servers, problems } = config.mcp_servers();
    let name = &args.name;
    if let Some(problem) = problems.into_iter().find(|it| it.name == *name) {
        let origin = config.mcp_server_origin(name);
        let origin = origin.map(|it| format!(", in {it}")).unwrap_or_default();
        bail!("{problem}{origin}");
    }
    let Some(server) = servers.iter().find(|it| it.name == *name) else {
        return Err(unknown(config, name));
    };
    match args.json {
        true => print_lines([view::json(server).to_string()])?,
        false => print_lines(view::lines(server))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(config: &Configuration, args: &McpRemove) -> Result<ExitCode> {
    let name = &args.name;
    if !config.is_users_mcp_server(name) {
        return Err(match config.mcp_server_origin(name) {
            Some(origin) => anyhow!(
                "the MCP server `{name}` is defined in {origin}, not in {}; remove it there",
                config.user_file().display()
            ),
            None => unknown(config, name),
        });
    }
    let written = config.remove_mcp_server(name);
    let written = written.map_err(|error| config::not_written(config, error))?;
    report(&format!(
        "removed the MCP server `{name}` from {}",
        written.file
    ));
    if let Some(origin) = config.mcp_server_origin(name) {
        report(&format!(
            "warning: it is still defined in {origin}; remove it there as well"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The error for a name that no server has.
fn unknown(config: &Configuration, name: &str) -> anyhow::Error {
    let McpServers { servers, problems } = config.mcp_servers();
    let servers = servers.iter().map(|it| it.name.as_str());
    let names: Vec<&str> = servers
        .chain(problems.iter().map(|it| it.name.as_str()))
        .collect();
    match names.is_empty() {
        true => anyhow!(
            "no MCP server is named `{name}`, and none is configured; `raddle mcp add` adds one"
        ),
        false => anyhow!(
            "no MCP server is named `{name}`; use one of {}",
            names.join(", ")
        ),
    }
}

/// Reports that a stronger layer than the user's file defines the server as well.
fn report_overridden(written: &WrittenValue) {
    if let Some(by) = &written.overridden {
        report(&format!(
            "warning: {by} has another value, which takes precedence"
        ));
    }
}

fn report(text: &str) {
    log::print_line(&format!("raddle: {text}"));
}
