//! `raddle exec`: one turn, for scripts and for people in a hurry. An ordinary client of the protocol.

mod asking;
mod ending;
mod events;
mod fold;
mod limits;
mod opening;
mod output;
mod place;
mod plan;
mod quote;
mod rights;
mod schema;
mod screen;
mod session;
mod typed;
mod vendor;
mod words;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_server::Override;

use self::ending::{Ended, USAGE};
use self::output::OutputFile;
use self::plan::{Around, Plan};
use crate::app_server;
use crate::cli::Exec;
use crate::log;
use crate::print::{Printer, harmless, one_line};

/// How long the line about the end may be.
const LINE_LETTERS: usize = 4000;

/// Runs it, and says how it ended by its status; `docs/exec.md` has the numbers.
pub(crate) fn run(before: Vec<Override>, args: Exec) -> Result<ExitCode> {
    let planned = Plan::read(before, args, Around::look());
    let planned = planned.and_then(|plan| Ok((place::find(&plan)?, plan)));
    let (place, mut plan) = match planned {
        Ok(planned) => planned,
        Err(what) => {
            log::say(&format!("raddle: {what}"));
            return Ok(ExitCode::from(USAGE));
        }
    };
    // The keys are in our environment as well as in the server's.
    app_server::hide()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let (is_json, file) = (plan.options.json, plan.output.take());
    let ended = runtime.block_on(session::run(plan, place));
    runtime.shutdown_timeout(Duration::ZERO);
    if let Some(line) = ended.line() {
        log::say(&format!("raddle: {}", one_line(&line, LINE_LETTERS)));
    }
    hand_over(&ended, is_json, file.as_ref())?;
    Ok(ended.status())
}

/// Gives the answer to whoever wants it. It is printed before a file can fail.
fn hand_over(ended: &Ended, is_json: bool, file: Option<&OutputFile>) -> Result<()> {
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
        true => printer.line(harmless(answer).trim_end())?,
        false => printer.line(answer)?,
    }
    printer.flush()
}
