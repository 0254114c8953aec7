//! `raddle completions` and `raddle man`: completion scripts and manual pages.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use raddle_console::Printer;

use crate::cli::{Cli, Completions, Man};
use crate::log;

pub(crate) fn completions(args: &Completions) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "raddle", &mut text);
    let mut printer = Printer::new();
    printer.line(String::from_utf8(text)?.trim_end())?;
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for each command.
pub(crate) fn man(args: &Man) -> Result<ExitCode> {
    let out = &args.out;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    clap_mangen::generate_to(Cli::command(), out)
        .with_context(|| format!("cannot write to {}", out.display()))?;
    let count = fs::read_dir(out)?.count();
    log::print_line(&format!("wrote {count} pages to {}", out.display()));
    Ok(ExitCode::SUCCESS)
}
