//! `adversary-trials`: a hijacked model, hostile workspaces and absent clients, against the real
//! program.
//!
//! The claim is not that a model cannot be hijacked, but that a hijacked one gets no further than
//! the sandbox and the approvals allow. `cargo xtask prove adversary` runs it at full size, CI a
//! slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod call;
mod control;
mod counters;
mod grammar;
mod host;
mod model;
mod secrets;
mod server;
mod socket;
mod unattended;
mod webhook;
mod workspaces;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Prefix of a failure that is only a missed time limit.
const LATE: &str = "late: ";

/// Exit code if nothing else failed (`EX_TEMPFAIL` of sysexits.h): CI retries then.
const LATE_CODE: u8 = 75;

/// Attacks the program as a model, as a workspace and as an absent user
#[derive(Parser)]
struct AdversaryArgs {
    #[command(subcommand)]
    command: AdversaryCommand,
}

#[derive(Subcommand)]
enum AdversaryCommand {
    /// A model that calls any tool with any arguments
    Model(world::WorldArgs),
    /// Workspaces that try to make the server run something
    Workspaces(workspaces::WorkspacesArgs),
    /// Requests without an attached client
    Unattended(unattended::UnattendedArgs),
    /// The attacks of that model without a sandbox
    Control {
        /// The program under test.
        #[arg(long)]
        raddle: PathBuf,
        /// Seed of the random numbers.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run the attacks in this process; started by `control`
    #[command(hide = true)]
    Unsandboxed {
        #[arg(long)]
        seed: u64,
    },
}

fn main() -> Result<ExitCode> {
    let is_success = match AdversaryArgs::parse().command {
        AdversaryCommand::Model(it) => it.run()?,
        AdversaryCommand::Workspaces(it) => it.run()?,
        AdversaryCommand::Unattended(it) => {
            let wrongs = it.run()?;
            let is_only_late = wrongs.iter().all(|it| it.starts_with(LATE));
            if is_only_late && !wrongs.is_empty() {
                return Ok(ExitCode::from(LATE_CODE));
            }
            wrongs.is_empty()
        }
        AdversaryCommand::Control { raddle, seed } => control::run(seed, &raddle)?,
        AdversaryCommand::Unsandboxed { seed } => {
            control::run_unconfined(seed)?;
            true
        }
    };
    Ok(if is_success {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
