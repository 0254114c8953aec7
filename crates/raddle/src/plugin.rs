//! `raddle plugin`: writes, tests and installs sidecar plugins, without a server.

mod install;
mod list;
mod logs;
mod new;
mod revoke;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use raddle_config::{Configuration, Override};
use raddle_console::sanitize;

use crate::cli::PluginCommand;
use crate::config;
use crate::home::Home;
use crate::log;

pub(crate) fn run(overrides: Vec<Override>, command: PluginCommand) -> Result<ExitCode> {
    let opened = |overrides| -> Result<Configuration> { config::open(&Home::find()?, overrides) };
    match command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Test(args) => test::run(overrides, &args),
        PluginCommand::Add(args) => install::add(&opened(overrides)?, &args),
        PluginCommand::List(args) => list::run(&opened(overrides)?, &args),
        PluginCommand::Enable(args) => install::enable(&opened(overrides)?, &args.id, true),
        PluginCommand::Disable(args) => install::enable(&opened(overrides)?, &args.id, false),
        PluginCommand::Trust(args) => install::trust(&opened(overrides)?, &args.id),
        PluginCommand::Revoke(args) => revoke::run(&opened(overrides)?, &args),
        PluginCommand::Remove(args) => install::remove(&opened(overrides)?, &args.id),
        PluginCommand::Logs(args) => logs::run(&opened(overrides)?, &args),
    }
}

fn report(text: &str) {
    log::print_line(&sanitize(&format!("raddle: {text}")));
}
