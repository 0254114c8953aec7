//! `journal-trials`: the local journal at full size, killed, damaged, full, failing and huge.
//!
//! Each trial measures, compares the result with the limit, prints both, and fails if a limit is
//! missed. `cargo xtask prove` runs them at full size, CI in slices.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod big;
mod child;
mod content;
mod crash;
mod damage;
mod faults;
mod ledger;
mod live;
mod turn;
mod verdict;
mod writer;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Tests the local journal at full size.
#[derive(Parser)]
struct JournalArgs {
    #[command(subcommand)]
    trial: JournalTrial,
}

#[derive(Subcommand)]
enum JournalTrial {
    /// Kill a writing process, and check the journal against the acknowledged records.
    Crash(crash::Crash),
    /// Make the disk fail or be full while a process writes.
    Faults(faults::Faults),
    /// Flip bits of the database and its WAL, and check what is served.
    Damage(damage::Damage),
    /// Generate huge threads and very many threads, and measure their cost.
    Big(big::Big),
    /// Measure one operation; started by `big`.
    #[command(hide = true)]
    Look(big::MeasureArgs),
    /// Write until killed; started by the other trials.
    #[command(hide = true)]
    Write(writer::WriterArgs),
}

fn main() -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let ok = match JournalArgs::parse().trial {
        JournalTrial::Crash(it) => it.run(&runtime)?,
        JournalTrial::Faults(it) => it.run(&runtime)?,
        JournalTrial::Damage(it) => it.run(&runtime)?,
        JournalTrial::Big(it) => it.run(&runtime)?,
        JournalTrial::Look(it) => {
            for row in runtime.block_on(it.run())? {
                println!("{}", serde_json::to_string(&row)?);
            }
            true
        }
        JournalTrial::Write(it) => {
            runtime.block_on(it.run())?;
            true
        }
    };
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
