//! `crowd-trials`: clients that are slow, hostile or many, beside ordinary ones, through the real program.
//!
//! `cargo xtask prove crowd` and `cargo xtask prove soak` run it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod client;
mod compare;
mod drip;
mod fold;
mod lost_clients;
mod many;
mod pipelined;
mod ratio;
mod rng;
mod server;
mod slow;
mod slow_clients;
mod soak;
mod stream;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

use crate::ratio::TooSlow;
use crate::server::CrowdServer;

/// Sets slow, hostile and many clients beside ordinary ones.
#[derive(Parser)]
struct CrowdArgs {
    /// The program under test.
    #[arg(long, global = true, default_value = "raddle")]
    raddle: PathBuf,
    #[command(subcommand)]
    trial: CrowdTrial,
}

#[derive(Subcommand)]
enum CrowdTrial {
    /// Those who read slowly or never, who ask too much, who drip, who vanish, and who are many.
    Crowd(Crowd),
    /// Mixed load with clients that are killed: what the server holds stays the same.
    Soak(Soak),
    /// The program and another build of it under the same load, in turn.
    Compare(Compare),
}

#[derive(Args)]
struct Crowd {
    /// How many pieces a thread says to everyone.
    #[arg(long, default_value_t = 50_000)]
    pieces: usize,
    /// How many pairs of runs are compared.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// By how much others may lengthen the time that ordinary clients wait.
    #[arg(long, default_value_t = 1.5)]
    ratio: f64,
    /// For how many seconds the slow ones stay slow at the end: longer than anyone may read nothing. With none, nobody is let go, and nobody vanishes.
    #[arg(long, default_value_t = 330)]
    stay: u64,
    /// How many requests one client sends at once.
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
    /// How many sockets drip.
    #[arg(long, default_value_t = 1000)]
    sockets: usize,
    /// How many threads stream at the same time, over one connection and over a tenth as many.
    #[arg(long, default_value_t = 1000)]
    threads: usize,
}

#[derive(Args)]
struct Soak {
    /// How long.
    #[arg(long, default_value_t = 1200)]
    seconds: u64,
    /// How much of that does not count.
    #[arg(long, default_value_t = 300)]
    warm: u64,
    /// By how many hundredths what the server holds may differ.
    #[arg(long, default_value_t = 10)]
    percent: u64,
}

#[derive(Args)]
struct Compare {
    /// The other build.
    #[arg(long)]
    other: PathBuf,
    /// How many pieces each thread says.
    #[arg(long, default_value_t = 20_000)]
    pieces: usize,
    /// How many pairs of runs are compared.
    #[arg(long, default_value_t = 9)]
    pairs: usize,
    /// How many threads there are when the memory is looked at.
    #[arg(long, default_value_t = 1000)]
    threads: usize,
}

/// Exit code where nothing was wrong but a ratio of times (`EX_TEMPFAIL` of sysexits.h): CI tries again then.
const LATE_CODE: u8 = 75;

fn main() -> Result<ExitCode> {
    match run() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.is::<TooSlow>() => {
            println!("late: {error:#}");
            Ok(ExitCode::from(LATE_CODE))
        }
        Err(error) => Err(error),
    }
}

fn run() -> Result<()> {
    let arguments = CrowdArgs::parse();
    // The server lives in a folder of its own.
    let raddle = &std::path::absolute(&arguments.raddle)?;
    match arguments.trial {
        CrowdTrial::Crowd(size) => crowd(raddle, &size),
        CrowdTrial::Soak(size) => {
            let size = soak::SoakSize {
                time: Duration::from_secs(size.seconds),
                warm: Duration::from_secs(size.warm),
                percent: size.percent,
            };
            soak::run(&CrowdServer::start(raddle)?, &size)
        }
        CrowdTrial::Compare(size) => {
            let other = &std::path::absolute(&size.other)?;
            let size = compare::CompareSize {
                pieces: size.pieces,
                pairs: size.pairs.max(1),
                threads: size.threads,
            };
            compare::run([raddle, other], &size)
        }
    }
}

fn crowd(raddle: &Path, size: &Crowd) -> Result<()> {
    let slow = slow::SlowSize {
        pieces: size.pieces,
        pairs: size.pairs,
        ratio_max: size.ratio,
        linger: Duration::from_secs(size.stay),
    };
    let mut server = CrowdServer::start(raddle)?;
    slow::run(&mut server, &slow).context("those who read slowly or never")?;
    let server = CrowdServer::start(raddle)?;
    pipelined::run(&server, size.requests).context("one who asks too much")?;
    let drip = drip::DripSize {
        sockets: size.sockets,
        // Nobody has to fall behind here.
        pieces: size.pieces / 2,
        pairs: size.pairs,
        ratio_max: size.ratio,
    };
    drip::run(&server, &drip).context("those who drip")?;
    for connections in [1, size.threads.div_ceil(10)] {
        many::run(&server, size.threads, connections).context("many threads")?;
    }
    if !slow.linger.is_zero() {
        lost_clients::run(&server).context("those who vanish")?;
    }
    println!("nobody was kept waiting, forgotten or mistaken for another");
    Ok(())
}
