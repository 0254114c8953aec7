//! `rejoin-trials`: clients that disconnect and resume, against the real program.
//!
//! A server, `raddle mock` behind it, and clients that know the last record they received. Wherever
//! they are disconnected, and whether or not the server is killed meanwhile, their notifications
//! must add up to the thread. `cargo xtask prove rejoin` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod client;
mod disconnects;
mod idempotency;
mod kill;
mod race;
mod server;
mod wire;

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;

use crate::disconnects::PausedThread;
use crate::server::{RejoinHarness, ServerEndpoint};

/// Disconnects clients, kills servers, and checks that every resuming client reaches the full
/// state.
#[derive(Parser)]
struct RejoinArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// Number of pieces of the message; clients are disconnected at each.
    #[arg(long, default_value_t = 300)]
    cuts: usize,
    /// Number of kills of a server, on each transport.
    #[arg(long, default_value_t = 10)]
    kills: usize,
    /// Number of requests that two clients answer at once.
    #[arg(long, default_value_t = 30)]
    races: usize,
    /// Number of rounds in which every request that changes a thread is sent three times, around
    /// each kind of kill.
    #[arg(long, default_value_t = 1)]
    again: usize,
}

fn main() -> Result<()> {
    let arguments = RejoinArgs::parse();
    let harness = RejoinHarness::open(&arguments.raddle)?;
    let mut paused = PausedThread::open(&harness, arguments.cuts)?;
    through_sockets("in the middle", |endpoint| {
        paused.observed.check_messages(endpoint)
    })?;
    let whole = paused.complete(&harness)?;
    through_sockets("afterwards", |endpoint| {
        paused.observed.check_final_state(endpoint, &whole)
    })?;
    drop(paused);
    for endpoint in [
        ServerEndpoint::Websocket,
        ServerEndpoint::Unix,
        ServerEndpoint::Stdio,
    ] {
        let start = Instant::now();
        kill::run(&harness, endpoint, arguments.kills)?;
        println!(
            "figure: {endpoint:?}: killed {} times, {:.1?}",
            arguments.kills,
            start.elapsed()
        );
    }
    let start = Instant::now();
    let wins = race::race(&harness, arguments.races)?;
    println!(
        "figure: {} races, {wins} won by the first, {:.1?}",
        arguments.races,
        start.elapsed()
    );
    let start = Instant::now();
    race::answer_after_kill(&harness, arguments.kills)?;
    println!(
        "figure: killed {} times while a request was open, {:.1?}",
        arguments.kills,
        start.elapsed()
    );
    let start = Instant::now();
    let sent = idempotency::run(&harness, arguments.again)?;
    println!(
        "figure: {sent} requests sent again, {:.1?}",
        start.elapsed()
    );
    println!("nothing was missed, told twice or taken back");
    Ok(())
}

/// Runs a trial over both kinds of sockets at once.
fn through_sockets(
    when: &str,
    trial: impl Fn(ServerEndpoint) -> Result<usize> + Sync,
) -> Result<()> {
    let run_trial = &|endpoint| {
        let start = Instant::now();
        let cuts = trial(endpoint).with_context(|| format!("{endpoint:?}, {when}"))?;
        println!(
            "figure: {endpoint:?}: {cuts} came back {when}, {:.1?}",
            start.elapsed()
        );
        anyhow::Ok(())
    };
    thread::scope(|scope| {
        let workers = [ServerEndpoint::Websocket, ServerEndpoint::Unix]
            .map(|endpoint| scope.spawn(move || run_trial(endpoint)));
        let ends = workers.map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ends.into_iter().collect()
    })
}
