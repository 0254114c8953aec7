//! `adversary-trials`: a hijacked model, hostile workspaces and nobody attached, against the real program.
//!
//! The claim is not that a model cannot be hijacked, but that a hijacked one gets no further than the fence
//! and what people approved. `cargo xtask prove adversary` runs it at full size, CI a slice.

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
mod process;
mod rng;
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

/// Begins the text of a wrong that is nothing but a missed time limit.
const LATE: &str = "late: ";

/// Exit code where nothing else was wrong (`EX_TEMPFAIL` of sysexits.h): CI tries again then.
const LATE_CODE: u8 = 75;

/// Attacks the program from where models, workspaces and absent users stand.
#[derive(Parser)]
struct AdversaryArgs {
    #[command(subcommand)]
    command: AdversaryCommand,
}

#[derive(Subcommand)]
enum AdversaryCommand {
    /// A model that calls any tool with any arguments
    Model(world::WorldArgs),
    /// Workspaces that try to give orders
    Workspaces(workspaces::WorkspacesArgs),
    /// Questions that nobody is there to answer
    Unattended(unattended::UnattendedArgs),
    /// The attacks of that model where nothing holds them
    Control {
        /// The program under test.
        #[arg(long)]
        raddle: PathBuf,
        /// Where chance begins.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Make the attacks here and now; started by `control`
    #[command(hide = true)]
    Unfenced {
        #[arg(long)]
        seed: u64,
    },
}

fn main() -> Result<ExitCode> {
    let well = match AdversaryArgs::parse().command {
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
        AdversaryCommand::Unfenced { seed } => {
            control::unfenced(seed)?;
            true
        }
    };
    Ok(if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
