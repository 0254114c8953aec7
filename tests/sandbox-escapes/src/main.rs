//! `sandbox-escapes`: attempts to break out of the sandbox.
//!
//! Each attempt is made in both tiers, as root and as a plain user, and once more without a
//! sandbox. The first tier must stop all of them, and with grants all that was not granted. The
//! second tier must stop exactly those that it promises to stop. Without a sandbox nearly all must
//! succeed, because an attempt that always fails shows nothing. Ordinary work must succeed
//! everywhere. For comparison the attempts are also made inside bubblewrap with its usual
//! arguments.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod arm;
mod attempts;
mod cost;
mod host;
mod matrix;
mod ordinary_work;
mod plain_bwrap;
mod syscalls;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Tries to break out of the sandbox.
#[derive(Parser)]
struct EscapesArgs {
    #[command(subcommand)]
    command: Option<EscapesCommand>,
}

#[derive(Subcommand)]
enum EscapesCommand {
    /// Make every attempt in every arm, and compare the outcomes with the promises (the default)
    Matrix,
    /// Measure the cost of the sandbox
    Cost(cost::Cost),
    /// Make the attempts of one arm as the current user; started by `matrix`
    #[command(hide = true)]
    Arm(arm::ArmArgs),
    /// Make one attempt under the usual filter; started by `arm`
    #[command(hide = true)]
    Usual {
        /// Its name and the testbed
        words: Vec<OsString>,
    },
    /// Make one attempt; started by `arm`
    #[command(hide = true)]
    Attempt {
        /// Its name and the testbed
        words: Vec<OsString>,
    },
}

fn main() -> Result<ExitCode> {
    if let Some(code) = raddle_sandbox::take_over(std::env::args_os()) {
        return Ok(code);
    }
    let is_ok = match EscapesArgs::parse()
        .command
        .unwrap_or(EscapesCommand::Matrix)
    {
        EscapesCommand::Matrix => matrix::run()?,
        EscapesCommand::Cost(it) => it.run()?,
        EscapesCommand::Arm(it) => it.run()?,
        EscapesCommand::Usual { words } => {
            plain_bwrap::filter()?;
            return attempts::make(words);
        }
        EscapesCommand::Attempt { words } => return attempts::make(words),
    };
    Ok(if is_ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
