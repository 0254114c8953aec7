//! `raddle plugin`: writes and tests sidecar plugins, without a server.

mod new;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use raddle_config::Override;

use crate::cli::PluginCommand;

pub(crate) fn run(overrides: Vec<Override>, command: PluginCommand) -> Result<ExitCode> {
    match command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Test(args) => test::run(overrides, &args),
    }
}
