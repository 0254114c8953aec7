//! `raddle exec`: runs one turn, for scripts and the terminal.
//!
//! [`run`] takes [`Options`] and returns the exit status. Between them it is an ordinary client of
//! the protocol: it starts or resumes a thread, follows one turn to its end, prints events, and
//! answers or denies the agent's requests. It prints to stdout and stderr, and reads stdin only if
//! the options request it or a question is open.
//!
//! Below: `raddle-client`, `raddle-config`, `raddle-console` and `raddle-protocol`. Above:
//! `raddle`, which parses the command line.

mod elicitation;
mod ending;
mod error;
mod events;
mod explanations;
mod fold;
mod hunk_choice;
mod keyboard;
mod limits;
mod opening;
mod options;
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

use raddle_console::{Printer, one_line, print_line, sanitize};

use self::ending::RunEnd;
pub use self::ending::USAGE;
pub use self::error::Error;
use self::error::full_text;
pub use self::hunk_choice::{AS_A_WHOLE, CommentRule, HunkChoice, HunkView};
pub use self::options::{Color, Options, ThreadSelector, Unattended};
use self::output::OutputFile;
use self::plan::{Plan, RunContext};

/// The maximum length of the line about the end.
const LINE_LETTERS: usize = 4000;

/// Runs a turn and returns the exit status; `docs/exec.md` lists the statuses.
pub fn run(options: Options) -> Result<ExitCode, Error> {
    let planned = Plan::read(options, RunContext::look());
    let planned = planned.and_then(|plan| Ok((server_address::find(&plan)?, plan)));
    let (address, mut plan) = match planned {
        Ok(planned) => planned,
        Err(error) => {
            print_line(&format!("raddle: {}", full_text(&error)));
            return Ok(ExitCode::from(USAGE));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let (is_json, file) = (plan.options.json, plan.output.take());
    let ended = runtime.block_on(session::run(plan, address));
    runtime.shutdown_timeout(Duration::ZERO);
    if let Some(line) = ended.line() {
        print_line(&format!("raddle: {}", one_line(&line, LINE_LETTERS)));
    }
    hand_over(&ended, is_json, file.as_ref())?;
    Ok(ended.status())
}

/// Prints the answer, then writes it to the file, so that a failing file does not hide it.
fn hand_over(ended: &RunEnd, is_json: bool, file: Option<&OutputFile>) -> Result<(), Error> {
    let Some(answer) = ended.answer() else {
        return Ok(());
    };
    let printed = if is_json { Ok(()) } else { print(answer) };
    if let Some(file) = file {
        file.write(answer).map_err(|source| Error::OutputFile {
            path: file.path().to_owned(),
            source,
        })?;
    }
    printed.map_err(Error::Stdout)
}

fn print(answer: &str) -> io::Result<()> {
    let mut printer = Printer::new();
    match printer.is_terminal() {
        true => printer.line(sanitize(answer).trim_end())?,
        false => printer.line(answer)?,
    }
    printer.flush()
}
