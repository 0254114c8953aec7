//! The attempts, by their target.

mod files;
mod kernel;
mod network;
mod processes;
mod protected;
mod terminal;

pub use terminal::ON_TERMINAL;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_sandbox::attempt::{Attempt, CORE, Testbed};

use crate::ordinary_work::ORDINARY;

/// Exit code of an attempt that failed, which distinguishes it from one that never began.
pub const BLOCKED_EXIT_CODE: u8 = 42;

/// Returns all attempts; those of the sandbox's self-test first.
pub fn all() -> impl Iterator<Item = &'static Attempt> {
    [
        CORE,
        files::ATTEMPTS,
        protected::ATTEMPTS,
        network::ATTEMPTS,
        processes::ATTEMPTS,
        kernel::ATTEMPTS,
        terminal::ATTEMPTS,
    ]
    .into_iter()
    .flatten()
}

/// Makes the attempt, or does the work, of this name.
pub fn make(words: Vec<OsString>) -> Result<ExitCode> {
    let mut words = words.into_iter();
    let name = words.next().context("which attempt?")?;
    let attempt = all().find(|it| name == it.name).map(|it| it.run);
    let work = ORDINARY.iter().find(|it| name == it.name).map(|it| it.run);
    let run = attempt.or(work).context("there is no such attempt")?;
    let testbed = Testbed::parse(&mut words).context("on which stage?")?;
    Ok(match run(&testbed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(BLOCKED_EXIT_CODE)
        }
    })
}
