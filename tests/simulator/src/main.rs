//! `simulator`: plays many seeds, or one.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use raddle_core::Bug;
use simulator::coverage::{Coverage, REQUIRED};
use simulator::scenario::Scenario;
use simulator::{check::BrokenPromise, isolated, play, shrink};

/// Tries to break the core, by seed and in virtual time.
#[derive(Parser)]
struct SimulatorArgs {
    /// How many seeds to play.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Plant this bug, or `all` of them one after the other; each must be caught.
    #[arg(long)]
    bug: Option<String>,
    /// Play only this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Name the first seeds that reach this, as the counters call it.
    #[arg(long)]
    reaching: Option<String>,
    /// Say what happens, with `--seed`.
    #[arg(long)]
    trace: bool,
    /// Do not make a failing seed smaller.
    #[arg(long)]
    whole: bool,
    /// Print every counter.
    #[arg(long)]
    counters: bool,
}

/// How many threads of the process play.
const PLAYERS: u64 = 2;

/// Every so many seeds are played twice, and must come out the same.
const TWICE_EVERY: u64 = 10;

/// At full size, everything that must happen happens at least this often in 10,000 seeds.
const REACH_PER_TEN_THOUSAND: u64 = 100;

fn main() -> Result<ExitCode> {
    let arguments = SimulatorArgs::parse();
    if let Some(seed) = arguments.seed {
        return one(seed, &arguments);
    }
    if let Some(what) = &arguments.reaching {
        return reaching(what, &arguments);
    }
    match arguments.bug.as_deref() {
        None => clean(&arguments),
        Some("all") => {
            let mut all = true;
            for bug in Bug::ALL {
                all &= caught(bug, &arguments);
            }
            Ok(code(all))
        }
        Some(name) => Ok(code(caught(bug_of(name)?, &arguments))),
    }
}

/// The first few seeds that reach something, for the file of seeds.
fn reaching(what: &str, arguments: &SimulatorArgs) -> Result<ExitCode> {
    if !REQUIRED.contains(&what) {
        bail!("nothing is counted as {what:?}; `--counters` prints what is");
    }
    let seeds = arguments.from..arguments.from + arguments.seeds;
    let reach = |seed: &u64| play(&Scenario::of(*seed), false).reach.0.contains_key(what);
    let found: Vec<u64> = seeds.filter(reach).take(3).collect();
    println!("{what}: {found:?}");
    Ok(code(!found.is_empty()))
}

fn code(well: bool) -> ExitCode {
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn bug_of(name: &str) -> Result<Bug> {
    match Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name) {
        Some(bug) => Ok(bug),
        None => bail!("no such bug: {name}; there are {:?}", Bug::ALL),
    }
}

fn one(seed: u64, arguments: &SimulatorArgs) -> Result<ExitCode> {
    if let Some(name) = &arguments.bug {
        raddle_core::plant(Some(bug_of(name)?));
    }
    let scenario = Scenario::of(seed);
    let outcome = play(&scenario, arguments.trace);
    for line in &outcome.lines {
        println!("{line}");
    }
    println!("{scenario:#?}");
    println!("{} virtual ms, trace {:016x}", outcome.ms, outcome.trace.0);
    let broken = outcome.broken.or_else(|| isolated(&scenario).err());
    match broken {
        Some(it) => {
            report(seed, &it, arguments);
            Ok(ExitCode::FAILURE)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// What many seeds came to.
#[derive(Default)]
struct SeedCounters {
    failures: Vec<(u64, BrokenPromise)>,
    coverage: Coverage,
    ms: u64,
    played: u64,
}

fn many(arguments: &SimulatorArgs, bug: Option<Bug>, failures_max: usize) -> SeedCounters {
    let next = AtomicU64::new(arguments.from);
    let enough = AtomicBool::new(false);
    let tally = Mutex::new(SeedCounters::default());
    let player = || {
        raddle_core::plant(bug);
        let mut mine = SeedCounters::default();
        while !enough.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= arguments.from + arguments.seeds {
                break;
            }
            let scenario = Scenario::of(seed);
            let outcome = play(&scenario, false);
            mine.coverage.add(&outcome.reach);
            mine.ms += outcome.ms;
            mine.played += 1;
            let mut broken = outcome.broken;
            if broken.is_none() && bug.is_none() && seed.is_multiple_of(TWICE_EVERY) {
                if play(&scenario, false).trace != outcome.trace {
                    let how = "the same seed came out otherwise the second time".to_owned();
                    broken = Some(BrokenPromise {
                        promise: "determinism",
                        how,
                    });
                } else {
                    broken = isolated(&scenario).err();
                }
            }
            if let Some(broken) = broken {
                mine.failures.push((seed, broken));
                if mine.failures.len() >= failures_max {
                    enough.store(true, Ordering::Relaxed);
                }
            }
        }
        if let Ok(mut tally) = tally.lock() {
            tally.failures.append(&mut mine.failures);
            tally.coverage.add(&mine.coverage);
            tally.ms += mine.ms;
            tally.played += mine.played;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(player);
        }
    });
    let mut tally = tally.into_inner().unwrap_or_default();
    tally.failures.sort_by_key(|(seed, _)| *seed);
    tally
}

fn clean(arguments: &SimulatorArgs) -> Result<ExitCode> {
    let begun = Instant::now();
    let tally = many(arguments, None, 5);
    let seconds = begun.elapsed().as_secs_f64();
    for (seed, broken) in &tally.failures {
        println!("seed {seed}: {}: {}", broken.promise, broken.how);
    }
    if let Some((seed, broken)) = tally.failures.first() {
        report(*seed, broken, arguments);
    }
    if arguments.counters {
        for (what, count) in &tally.coverage.0 {
            println!("{count:>9} {what}");
        }
    }
    println!(
        "figure: {} seeds in {seconds:.1} s: {:.0} seeds/s, {:.0} virtual hours, {} broken promises",
        tally.played,
        tally.played as f64 / seconds,
        tally.ms as f64 / 3.6e6,
        tally.failures.len()
    );
    let least = arguments.seeds * REACH_PER_TEN_THOUSAND / 10_000;
    let below = tally.coverage.below(least);
    for (what, count) in &below {
        println!("reached too rarely: {what}, {count} times instead of {least}");
    }
    Ok(code(tally.failures.is_empty() && below.is_empty()))
}

fn caught(bug: Bug, arguments: &SimulatorArgs) -> bool {
    let tally = many(arguments, Some(bug), 1);
    match tally.failures.first() {
        Some((seed, broken)) => {
            println!(
                "figure: {bug:?}: caught at seed {seed}, {}: {}",
                broken.promise, broken.how
            );
            true
        }
        None => {
            println!("figure: {bug:?}: NOT caught in {} seeds", tally.played);
            false
        }
    }
}

fn report(seed: u64, broken: &BrokenPromise, arguments: &SimulatorArgs) {
    println!(
        "seed {seed} breaks a promise: {}: {}",
        broken.promise, broken.how
    );
    if arguments.whole {
        return;
    }
    let smallest = shrink(&Scenario::of(seed), broken.promise);
    let outcome = play(&smallest, true);
    for line in outcome.lines.iter().rev().take(40).rev() {
        println!("{line}");
    }
    println!("smallest scenario found: {smallest:#?}");
    if let Some(it) = outcome.broken {
        println!("{}: {}", it.promise, it.how);
    }
}
