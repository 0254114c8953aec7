//! `raddle exec`: runs one turn, for scripts and the terminal. An ordinary client of the protocol.

mod ending;
mod events;
mod fold;
mod keyboard;
mod limits;
mod opening;
mod output;
mod permissions;
mod plan;
mod questions;
mod quote;
mod schema;
mod screen;
mod server_address;
mod session;
mod vendor;
mod wire_items;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_config::Override;

use self::ending::{RunEnd, USAGE};
use self::output::OutputFile;
use self::plan::{Plan, RunContext};
use crate::app_server;
use crate::cli::Exec;
use crate::log;
use crate::print::{Printer, one_line, sanitize};

/// The maximum length of the line about the end.
const LINE_LETTERS: usize = 4000;

/// Runs a turn and returns the exit status; `docs/exec.md` lists the statuses.
pub(crate) fn run(before: Vec<Override>, args: Exec) -> Result<ExitCode> {
    let planned = Plan::read(before, args, RunContext::look());
    let planned = planned.and_then(|plan| Ok((server_address::find(&plan)?, plan)));
    let (address, mut plan) = match planned {
        Ok(planned) => planned,
        Err(what) => {
            log::print_line(&format!("raddle: {what}"));
            return Ok(ExitCode::from(USAGE));
        }
    };
    // The environment of this process holds the keys too, not only the server's.
    app_server::disable_core_dumps()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let (is_json, file) = (plan.options.json, plan.output.take());
    let ended = runtime.block_on(session::run(plan, address));
    runtime.shutdown_timeout(Duration::ZERO);
    if let Some(line) = ended.line() {
        log::print_line(&format!("raddle: {}", one_line(&line, LINE_LETTERS)));
    }
    hand_over(&ended, is_json, file.as_ref())?;
    Ok(ended.status())
}

/// Prints the answer, then writes it to the file, so that a failing file does not hide it.
fn hand_over(ended: &RunEnd, is_json: bool, file: Option<&OutputFile>) -> Result<()> {
    let Some(answer) = ended.answer() else {
        return Ok(());
    };
    let printed = if is_json { Ok(()) } else { print(answer) };
    if let Some(file) = file {
        file.write(answer)
            .with_context(|| format!("cannot write the answer to {}", file.path().display()))?;
    }
    Ok(printed?)
}

fn print(answer: &str) -> io::Result<()> {
    let mut printer = Printer::new();
    match printer.is_terminal() {
        true => printer.line(sanitize(answer).trim_end())?,
        false => printer.line(answer)?,
    }
    printer.flush()
}
