//! `rejoin-trials`: clients that are cut off and come back, through the real program.
//!
//! A server, `raddle mock` behind it, and clients that know what they were told last. Wherever they are cut off,
//! and whether or not the server is killed meanwhile, what they were told in all adds up to the thread.
//! `cargo xtask prove rejoin` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod client;
mod disconnects;
mod fold;
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

/// Cuts clients off, kills servers, and sees that whoever comes back knows everything.
#[derive(Parser)]
struct RejoinArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// How many pieces the message has at each of which clients are cut off.
    #[arg(long, default_value_t = 300)]
    cuts: usize,
    /// How often a server is killed, on each transport.
    #[arg(long, default_value_t = 10)]
    kills: usize,
    /// How many requests two clients answer at once.
    #[arg(long, default_value_t = 30)]
    races: usize,
    /// How often every request that changes a thread is sent three times, round each kind of kill.
    #[arg(long, default_value_t = 1)]
    again: usize,
}

fn main() -> Result<()> {
    let arguments = RejoinArgs::parse();
    let bench = RejoinHarness::open(&arguments.raddle)?;
    let mut held = PausedThread::open(&bench, arguments.cuts)?;
    through_sockets("in the middle", |door| held.observed.exact(door))?;
    let whole = held.complete(&bench)?;
    through_sockets("afterwards", |door| held.observed.folded(door, &whole))?;
    drop(held);
    for door in [
        ServerEndpoint::Websocket,
        ServerEndpoint::Unix,
        ServerEndpoint::Stdio,
    ] {
        let begun = Instant::now();
        kill::run(&bench, door, arguments.kills)?;
        println!(
            "figure: {door:?}: killed {} times, {:.1?}",
            arguments.kills,
            begun.elapsed()
        );
    }
    let begun = Instant::now();
    let wins = race::race(&bench, arguments.races)?;
    println!(
        "figure: {} races, {wins} won by the first, {:.1?}",
        arguments.races,
        begun.elapsed()
    );
    let begun = Instant::now();
    race::killed(&bench, arguments.kills)?;
    println!(
        "figure: killed {} times while a request was open, {:.1?}",
        arguments.kills,
        begun.elapsed()
    );
    let begun = Instant::now();
    let sent = idempotency::run(&bench, arguments.again)?;
    println!(
        "figure: {sent} requests sent again, {:.1?}",
        begun.elapsed()
    );
    println!("nothing was missed, told twice or taken back");
    Ok(())
}

/// Through both kinds of sockets at once.
fn through_sockets(when: &str, cut: impl Fn(ServerEndpoint) -> Result<usize> + Sync) -> Result<()> {
    let cut = &|door| {
        let begun = Instant::now();
        let cuts = cut(door).with_context(|| format!("{door:?}, {when}"))?;
        println!(
            "figure: {door:?}: {cuts} came back {when}, {:.1?}",
            begun.elapsed()
        );
        anyhow::Ok(())
    };
    thread::scope(|scope| {
        let doors = [ServerEndpoint::Websocket, ServerEndpoint::Unix]
            .map(|door| scope.spawn(move || cut(door)));
        let ends = doors.map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ends.into_iter().collect()
    })
}
