//! `raddle mcp login` and `raddle mcp logout`.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use raddle_config::{Config, McpConfig, McpServer, Override};
use raddle_core::ports::McpLogin;
use raddle_model::ModelClient;

use super::report;
use crate::cli;
use crate::home::Home;
use crate::runtime;

pub(super) fn log_in(overrides: &[Override], args: &cli::McpLogin) -> Result<ExitCode> {
    let home = Home::find()?;
    let server = find(&home, overrides, &args.settings, &args.name)?;
    let runtime = runtime::current_thread()?;
    runtime.block_on(async {
        let scopes = args.scopes.clone();
        let started = raddle_plugin::log_in(&home.state, &server, scopes, ModelClient::new());
        let McpLogin { page, end } = started.await?;
        report(&format!("open this page in your browser: {page}"));
        end.await?;
        report(&format!(
            "logged in at `{}`; running servers use it too",
            server.name
        ));
        Ok(ExitCode::SUCCESS)
    })
}

pub(super) fn log_out(overrides: &[Override], args: &cli::McpLogout) -> Result<ExitCode> {
    let home = Home::find()?;
    let server = find(&home, overrides, &args.settings, &args.name)?;
    let removal = raddle_plugin::log_out(&home.state, &server, ModelClient::new());
    let is_removed = runtime::current_thread()?.block_on(removal)?;
    report(&match is_removed {
        true => format!("removed the login at `{}`", server.name),
        false => format!("no login at `{}` is stored", server.name),
    });
    Ok(ExitCode::SUCCESS)
}

/// Finds a server of the configuration.
fn find(
    home: &Home,
    overrides: &[Override],
    settings: &cli::SettingArgs,
    name: &str,
) -> Result<Arc<McpServer>> {
    let overrides: Vec<Override> = overrides.iter().chain(&settings.config).cloned().collect();
    let config = Arc::new(Config::open(&home.paths(), &overrides)?);
    let servers = McpConfig::of(&config).current();
    if let Some(problem) = servers.problems.iter().find(|it| it.name == name) {
        bail!("{problem}");
    }
    match servers.servers.into_iter().find(|it| it.name == name) {
        Some(server) => Ok(server),
        None => bail!("no MCP server is named `{name}`; `raddle mcp list` shows those that exist"),
    }
}
