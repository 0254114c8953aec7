//! `raddle plugin logs`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_config::Configuration;
use raddle_console::print_lines;
use raddle_plugin::plugin_log;

use super::{install, report};
use crate::cli::PluginLogs;
use crate::home::Home;

pub(super) fn run(config: &Configuration, args: &PluginLogs) -> Result<ExitCode> {
    let id = &args.id;
    install::installed(config, id)?;
    let text = plugin_log(&Home::find()?.state, id);
    let text = text.with_context(|| format!("the log of the plugin `{id}` cannot be read"))?;
    if text.is_empty() {
        report(&format!(
            "the plugin `{id}` has no log yet; it is written when a thread calls the plugin"
        ));
    }
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(args.lines);
    print_lines(lines[first..].iter().map(|it| (*it).to_owned()))?;
    Ok(ExitCode::SUCCESS)
}
