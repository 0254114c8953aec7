//! `crowd-trials`: slow, hostile or many clients beside ordinary ones, against the real program.
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
mod server;
mod slow;
mod slow_clients;
mod soak;
mod stream;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

use crate::ratio::TooSlow;
use crate::server::CrowdServer;

/// Runs slow, hostile and many clients beside ordinary ones.
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
    /// Clients that read slowly or never, send too many requests, drip, vanish, or are many.
    Crowd(Crowd),
    /// Mixed load with killed clients: the resources of the server stay constant.
    Soak(Soak),
    /// The program and another build of it under the same load, alternately.
    Compare(Compare),
}

#[derive(Args)]
struct Crowd {
    /// Number of pieces that a thread streams to all its subscribers.
    #[arg(long, default_value_t = 50_000)]
    pieces: usize,
    /// Number of pairs of runs to compare.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Maximum ratio by which other clients may lengthen the latency of ordinary clients.
    #[arg(long, default_value_t = 1.5)]
    ratio: f64,
    /// Seconds for which the slow clients stay slow at the end: longer than the server tolerates.
    /// With 0, none is disconnected and none vanishes.
    #[arg(long, default_value_t = 330)]
    stay: u64,
    /// Number of requests that one client sends at once.
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
    /// Number of dripping sockets.
    #[arg(long, default_value_t = 1000)]
    sockets: usize,
    /// Number of threads that stream concurrently, over one connection and over a tenth as many.
    #[arg(long, default_value_t = 1000)]
    threads: usize,
}

#[derive(Args)]
struct Soak {
    /// Duration in seconds.
    #[arg(long, default_value_t = 1200)]
    seconds: u64,
    /// Warm-up in seconds, which does not count.
    #[arg(long, default_value_t = 300)]
    warm: u64,
    /// Maximum change of the server's resources, in percent.
    #[arg(long, default_value_t = 10)]
    percent: u64,
}

#[derive(Args)]
struct Compare {
    /// Path of the other build.
    #[arg(long)]
    other: PathBuf,
    /// Number of pieces that each thread streams.
    #[arg(long, default_value_t = 20_000)]
    pieces: usize,
    /// Number of pairs of runs to compare.
    #[arg(long, default_value_t = 9)]
    pairs: usize,
    /// Number of threads when the memory is measured.
    #[arg(long, default_value_t = 1000)]
    threads: usize,
}

/// Exit code if only a ratio of times was too high (`EX_TEMPFAIL` of sysexits.h): CI retries then.
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
    // The server runs in its own folder.
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
        // No client needs to fall behind here.
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
