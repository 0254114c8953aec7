//! `simulator`: plays many seeds, or one.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use raddle_core::Bug;
use simulator::coverage::{Coverage, RARE, REQUIRED};
use simulator::results::ResultsFile;
use simulator::scenario::{Medium, Scenario};
use simulator::{check::BrokenPromise, isolated, play, shrink};

/// Tries to break the core, by seed and in virtual time.
#[derive(Parser)]
struct SimulatorArgs {
    /// Number of seeds to play.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// First seed to play.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Plant this bug, or `all` of them one after the other; each must be caught.
    #[arg(long)]
    bug: Option<String>,
    /// Play only this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Print the first seeds that reach this situation, as the counters name it.
    #[arg(long)]
    reaching: Option<String>,
    /// Continue after the seeds that this file has, up to the next multiple of `--seeds`, and record
    /// in it what was played.
    #[arg(long, requires = "version")]
    results: Option<PathBuf>,
    /// Version that is recorded with `--results`.
    #[arg(long)]
    version: Option<String>,
    /// Play only seeds of a fleet.
    #[arg(long)]
    fleet: bool,
    /// Print the trace, with `--seed`.
    #[arg(long)]
    trace: bool,
    /// Do not shrink a failing seed.
    #[arg(long)]
    whole: bool,
    /// Print every counter of situations.
    #[arg(long)]
    counters: bool,
}

impl SimulatorArgs {
    fn range(&self) -> Range<u64> {
        self.from..self.from + self.seeds
    }
}

/// Number of threads of the process that play seeds.
const PLAYERS: u64 = 2;

/// Interval of the seeds that are played twice, and must have the same result.
const TWICE_EVERY: u64 = 10;

/// Number of seeds after which a result is recorded.
const RECORD_EVERY: u64 = 10_000;

/// Number of failing seeds after which a run ends.
const FAILURES_MAX: usize = 5;

/// Least number of times per 10,000 seeds of full size that every required situation must occur.
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

/// Prints the first few seeds that reach a situation, for the file of seeds.
fn reaching(what: &str, arguments: &SimulatorArgs) -> Result<ExitCode> {
    if !REQUIRED.contains(&what) && !RARE.contains(&what) {
        bail!("nothing is counted as {what:?}; `--counters` prints what is");
    }
    let seeds = arguments.from..arguments.from + arguments.seeds;
    let reach = |seed: &u64| {
        play(&Scenario::of(*seed), false)
            .coverage
            .0
            .contains_key(what)
    };
    let matching: Vec<u64> = seeds.filter(reach).take(3).collect();
    println!("{what}: {matching:?}");
    Ok(code(!matching.is_empty()))
}

fn code(is_success: bool) -> ExitCode {
    if is_success {
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

/// Results of many seeds.
#[derive(Default)]
struct SeedCounters {
    failures: Vec<(u64, BrokenPromise)>,
    coverage: Coverage,
    ms: u64,
    played: u64,
}

impl SeedCounters {
    fn add(&mut self, mut other: Self) {
        self.failures.append(&mut other.failures);
        self.coverage.add(&other.coverage);
        self.ms += other.ms;
        self.played += other.played;
    }
}

fn many(
    arguments: &SimulatorArgs,
    seeds: Range<u64>,
    bug: Option<Bug>,
    failures_max: usize,
) -> SeedCounters {
    let next = AtomicU64::new(seeds.start);
    let enough = AtomicBool::new(false);
    let counters = Mutex::new(SeedCounters::default());
    let player = || {
        raddle_core::plant(bug);
        let mut mine = SeedCounters::default();
        while !enough.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let scenario = Scenario::of(seed);
            if arguments.fleet && scenario.medium != Medium::Fleet {
                continue;
            }
            let outcome = play(&scenario, false);
            mine.coverage.add(&outcome.coverage);
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
        if let Ok(mut counters) = counters.lock() {
            counters.add(mine);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(player);
        }
    });
    let mut counters = counters.into_inner().unwrap_or_default();
    counters.failures.sort_by_key(|(seed, _)| *seed);
    counters
}

fn clean(arguments: &SimulatorArgs) -> Result<ExitCode> {
    let begun = Instant::now();
    let counters = match &arguments.results {
        Some(path) => record(path, arguments)?,
        None => many(arguments, arguments.range(), None, FAILURES_MAX),
    };
    let seconds = begun.elapsed().as_secs_f64();
    for (seed, broken) in &counters.failures {
        println!("seed {seed}: {}: {}", broken.promise, broken.how);
    }
    if let Some((seed, broken)) = counters.failures.first() {
        report(*seed, broken, arguments);
    }
    if arguments.counters {
        for (what, count) in &counters.coverage.0 {
            println!("{count:>9} {what}");
        }
    }
    println!(
        "figure: {} seeds in {seconds:.1} s: {:.0} seeds/s, {:.0} virtual hours, {} broken promises",
        counters.played,
        counters.played as f64 / seconds,
        counters.ms as f64 / 3.6e6,
        counters.failures.len()
    );
    let least = counters.played * REACH_PER_TEN_THOUSAND / 10_000;
    let below = counters.coverage.below(least);
    for (what, count) in &below {
        println!("reached too rarely: {what}, {count} times instead of {least}");
    }
    Ok(code(counters.failures.is_empty() && below.is_empty()))
}

/// Plays the next seeds of the file of results, and records them.
fn record(path: &Path, arguments: &SimulatorArgs) -> Result<SeedCounters> {
    let version = arguments.version.as_deref().unwrap_or_default();
    let mut file = ResultsFile::open(path)?;
    let mut seeds = file.next(arguments.seeds);
    let mut all = SeedCounters::default();
    while !seeds.is_empty() && all.failures.is_empty() {
        let to = seeds.end.min(seeds.start + RECORD_EVERY);
        let counters = many(arguments, seeds.start..to, None, FAILURES_MAX);
        file.add(seeds.start, to, version, counters.failures.len() as u64)?;
        all.add(counters);
        seeds.start = to;
    }
    let (played, broken) = file.sum();
    println!("figure: {played} seeds in all runs, {broken} broken promises");
    Ok(all)
}

fn caught(bug: Bug, arguments: &SimulatorArgs) -> bool {
    let counters = many(arguments, arguments.range(), Some(bug), 1);
    match counters.failures.first() {
        Some((seed, broken)) => {
            println!(
                "figure: {bug:?}: caught at seed {seed}, {}: {}",
                broken.promise, broken.how
            );
            true
        }
        None => {
            println!("figure: {bug:?}: NOT caught in {} seeds", counters.played);
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
