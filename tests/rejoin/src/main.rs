//! `raddle-rejoin-trials`: clients that are cut off and come back, through the real program.
//!
//! A server, `raddle mock` behind it, and clients that know what they were told last. Wherever they are cut off,
//! and whether or not the server is killed meanwhile, what they were told in all adds up to the thread.
//! `cargo xtask prove rejoin` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod again;
mod client;
mod cut;
mod fold;
mod kill;
mod race;
mod server;
mod wire;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;

use crate::cut::Held;
use crate::server::{Bench, Door};

/// Cuts clients off, kills servers, and sees that whoever comes back knows everything.
#[derive(Parser)]
struct Arguments {
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
    let arguments = Arguments::parse();
    let bench = Bench::open(&arguments.raddle)?;
    let mut held = Held::open(&bench, arguments.cuts)?;
    for door in [Door::Websocket, Door::Unix] {
        let begun = Instant::now();
        let cuts = held.exact(door).context("in the middle of a message")?;
        println!(
            "{door:?}: {cuts} came back in the middle, {:.1?}",
            begun.elapsed()
        );
    }
    let whole = held.complete(&bench)?;
    for door in [Door::Websocket, Door::Unix] {
        let begun = Instant::now();
        let cuts = held.folded(door, &whole).context("after its end")?;
        println!(
            "{door:?}: {cuts} came back afterwards, {:.1?}",
            begun.elapsed()
        );
    }
    drop(held);
    for door in [Door::Websocket, Door::Unix, Door::Stdio] {
        let begun = Instant::now();
        kill::run(&bench, door, arguments.kills)?;
        println!(
            "{door:?}: killed {} times, {:.1?}",
            arguments.kills,
            begun.elapsed()
        );
    }
    let begun = Instant::now();
    let wins = race::race(&bench, arguments.races)?;
    println!(
        "{} races, {wins} won by the first, {:.1?}",
        arguments.races,
        begun.elapsed()
    );
    let begun = Instant::now();
    race::killed(&bench, arguments.kills)?;
    println!(
        "killed {} times while a request was open, {:.1?}",
        arguments.kills,
        begun.elapsed()
    );
    let begun = Instant::now();
    let sent = again::run(&bench, arguments.again)?;
    println!("{sent} requests sent again, {:.1?}", begun.elapsed());
    println!("nothing was missed, told twice or taken back");
    Ok(())
}
