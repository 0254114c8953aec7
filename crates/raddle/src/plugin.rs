//! `raddle plugin`: writes and tests sidecar plugins, without a server.

mod new;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use raddle_config::Override;
use raddle_console::{Printer, sanitize};

use crate::cli::PluginCommand;

pub(crate) fn run(overrides: Vec<Override>, command: PluginCommand) -> Result<ExitCode> {
    match command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Test(args) => test::run(overrides, &args),
    }
}

fn print(lines: impl IntoIterator<Item = String>) -> Result<()> {
    let mut printer = Printer::new();
    for line in lines {
        printer.line(&sanitize(&line))?;
    }
    printer.flush()?;
    Ok(())
}
