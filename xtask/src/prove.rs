//! Full-size proofs: what CI samples, run at length. At most an hour each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::repository::{self, cargo};
use crate::run::Run;
use crate::{ci, fuzz, parts, reproducible, tools, trials};

/// Name, and what it shows.
const PROOFS: &[(&str, &str)] = &[
    ("fuzz", "every fuzz target for 10 minutes, or `--minutes N`"),
    ("hostile", "50,000 hostile frames on each transport"),
    (
        "contract",
        "200 rounds of generated instances against the schema of the real Codex",
    ),
    (
        "slow-sockets",
        "1,000 dripping sockets and a client that never reads, beside ordinary clients",
    ),
    (
        "left-behind",
        "1,000 unruly commands ended, left by their client, or orphaned by a killed server",
    ),
    (
        "quiet",
        "a turn of a million deltas, of which the log tells next to nothing",
    ),
    ("flood", "a command that writes for 60 s as fast as it can"),
    (
        "always-ends",
        "100 turns for each way of a model to fail, and for one that is slow",
    ),
    (
        "rejoin",
        "clients cut off at each of 10,000 records of a message, servers killed 500 times, 1,000 races to answer",
    ),
    (
        "nodes",
        "four processes on one home with 40 threads, 200 kills, and 64 that start at once",
    ),
    (
        "crowd",
        "clients that read slowly or never, ask too much, drip, vanish or are many, beside ordinary ones",
    ),
    (
        "soak",
        "20 minutes of mixed load with clients killed at random: memory and descriptors stay the same",
    ),
    (
        "adversary",
        "100,000 calls of a hijacked model, hostile workspaces, and nobody attached",
    ),
    (
        "simulator",
        "200,000 simulated lives, then every planted bug within 10,000",
    ),
    (
        "crash",
        "the journal's writer killed 2,000 times at random and at every call, its disk failing or full",
    ),
    ("damage", "2,000 changed bits of the database and its log"),
    (
        "big",
        "a thread of 5 GB and 100,000 threads, in about 6 GB of the temporary folder",
    ),
    ("append", "appends beside bare SQLite, as ratios"),
    (
        "fence-cost",
        "a fenced command that does nothing, with the release binary or `--raddle BIN`, as ratios to bare bubblewrap and to none",
    ),
    (
        "reproducible",
        "two clean release builds of the last commit in two folders, bit for bit the same",
    ),
    (
        "speed",
        "the release binary, or `--raddle BIN`, as ratios to the least possible server",
    ),
    (
        "wires",
        "what the release binary, or `--raddle BIN`, adds to a model's words on each wire, as ratios to a bare reader",
    ),
];

pub fn command(mut arguments: Arguments) -> Result<()> {
    if arguments.flag("--list") {
        arguments.end()?;
        for (name, about) in PROOFS {
            println!("{name:<14}{about}");
        }
        return Ok(());
    }
    let minutes = arguments.number("--minutes")?;
    if minutes == Some(0) {
        bail!("--minutes takes at least 1: to libFuzzer, no time at all means forever");
    }
    let raddle = arguments.value("--raddle")?.map(PathBuf::from);
    let name = arguments.word();
    arguments.end()?;
    if minutes.is_some() && name.as_deref() != Some("fuzz") {
        bail!("--minutes is for the proof `fuzz`");
    }
    let takes_raddle = [
        "adversary",
        "crowd",
        "fence-cost",
        "nodes",
        "rejoin",
        "soak",
        "speed",
        "wires",
    ];
    if raddle.is_some() && !name.as_deref().is_some_and(|it| takes_raddle.contains(&it)) {
        bail!("--raddle is for the proofs {}", takes_raddle.join(", "));
    }

    let root = repository::root()?;
    let cache = Cache::open()?;
    let _lock = cache.lock("ci")?;
    match name.as_deref() {
        Some("fuzz") => fuzz::run(
            &root,
            &cache,
            Duration::from_secs(minutes.unwrap_or(10) * 60),
        ),
        Some("hostile") => hostile(&root, &cache),
        Some("contract") => contract(&root, &cache),
        Some("slow-sockets") => slow_sockets(&root, &cache),
        Some("left-behind") => left_behind(&root, &cache),
        Some("quiet") => quiet(&root, &cache),
        Some("flood") => flood(&root, &cache),
        Some("always-ends") => always_ends(&root, &cache),
        Some("rejoin") => rejoin(&root, &cache, raddle),
        Some("nodes") => nodes(&root, &cache, raddle),
        Some("crowd") => crowd(&root, &cache, raddle, "crowd"),
        Some("soak") => crowd(&root, &cache, raddle, "soak"),
        Some("adversary") => adversary(&root, &cache, raddle),
        Some("simulator") => simulator(&root, &cache),
        Some("crash") => trials::crash(&root, &cache),
        Some("damage") => trials::damage(&root, &cache),
        Some("big") => trials::big(&root, &cache),
        Some("append") => trials::append(&root, &cache),
        Some("fence-cost") => fence_cost(&root, &cache, raddle),
        Some("reproducible") => reproducible::prove(&root, &cache),
        Some("speed") => speed(&root, &cache, raddle, &[]),
        Some("wires") => speed(&root, &cache, raddle, &["wires"]),
        _ => bail!("name a proof; `cargo xtask prove --list` lists them"),
    }
}

fn hostile(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_HOSTILE_FRAMES", "50000")
        .go()
}

fn slow_sockets(root: &Path, cache: &Cache) -> Result<()> {
    // It is ignored in an ordinary run. Should it be gone, nextest fails for want of a test.
    raddle_tests(root, cache)?
        .args(["--run-ignored", "only", "--no-tests", "fail"])
        .args(["--no-capture", "slow_sockets_full"])
        .go()
}

fn left_behind(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_LEFT_BEHIND_ROUNDS", "1000")
        .args(["--no-tests", "fail", "--no-capture"])
        .arg("nothing_is_left_behind")
        .go()
}

fn quiet(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_QUIET_DELTAS", "1000000")
        .args(["--no-tests", "fail", "--no-capture", "a_long_turn_is"])
        .go()
}

fn flood(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_FLOOD_SECONDS", "60")
        .args(["--no-tests", "fail", "--no-capture", "flood_that_is"])
        .go()
}

/// The tests of the binary, with room for those that take many minutes.
fn raddle_tests(root: &Path, cache: &Cache) -> Result<Run> {
    Ok(Run::new(tools::cargo_nextest(cache)?)
        .directory(root)
        .args(["nextest", "run", "--package", "raddle", "--locked"])
        // The second profile is that of .config/nextest.toml.
        .args(["--cargo-profile", "ci", "--profile", "prove"])
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(60))
}

fn always_ends(root: &Path, cache: &Cache) -> Result<()> {
    parts::install(cache, &[parts::DEBIAN.to_owned()])?;
    let raddle = ci::release(root, cache)?;
    trials::always_ends(root, cache, &raddle, "100")
}

fn rejoin(root: &Path, cache: &Cache, raddle: Option<PathBuf>) -> Result<()> {
    let raddle = binary(root, cache, raddle)?;
    // Pieces, of which some share a record where the machine has other things to do.
    trials::rejoin(root, cache, &raddle, ["11500", "500", "1000", "20"])
}

fn nodes(root: &Path, cache: &Cache, raddle: Option<PathBuf>) -> Result<()> {
    trials::nodes(root, cache, &binary(root, cache, raddle)?, &[])
}

fn crowd(root: &Path, cache: &Cache, raddle: Option<PathBuf>, trial: &str) -> Result<()> {
    trials::crowd(root, cache, &binary(root, cache, raddle)?, &[trial])
}

fn adversary(root: &Path, cache: &Cache, raddle: Option<PathBuf>) -> Result<()> {
    parts::install(cache, &[parts::DEBIAN.to_owned()])?;
    trials::adversary(root, cache, &binary(root, cache, raddle)?, "100000")
}

fn fence_cost(root: &Path, cache: &Cache, raddle: Option<PathBuf>) -> Result<()> {
    trials::fence_cost(root, cache, &binary(root, cache, raddle)?)
}

/// This binary, or the release build.
fn binary(root: &Path, cache: &Cache, raddle: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(path) = raddle {
        // Cargo may run us from anywhere below the repository.
        return Ok(std::path::absolute(path)?);
    }
    parts::install(cache, &[parts::DEBIAN.to_owned()])?;
    ci::release(root, cache)
}

fn simulator(root: &Path, cache: &Cache) -> Result<()> {
    for size in [
        &["--seeds", "200000"][..],
        &["--seeds", "10000", "--bug", "all"],
    ] {
        cargo(root)
            .args([
                "run",
                "--locked",
                "--profile",
                "sim",
                "--package",
                "raddle-sim",
                "--",
            ])
            .args(size)
            .env("CARGO_TARGET_DIR", cache.target())
            .minutes(60)
            .go()?;
    }
    Ok(())
}

fn speed(root: &Path, cache: &Cache, raddle: Option<PathBuf>, words: &[&str]) -> Result<()> {
    let raddle = binary(root, cache, raddle)?;
    cargo(root)
        .args(["build", "--release", "--locked", "--package", "speed"])
        .env("CARGO_TARGET_DIR", cache.target())
        .go()?;
    Run::new(cache.target().join("release/speed"))
        .directory(root)
        .arg(raddle)
        .args(words)
        .minutes(20)
        .go()
}

fn contract(root: &Path, cache: &Cache) -> Result<()> {
    parts::install(cache, &["codex".to_owned()])?;
    cargo(root)
        .args([
            "run",
            "--profile",
            "ci",
            "--package",
            "contract-check",
            "--locked",
            "--",
        ])
        .args(["--rounds", "200", "--codex"])
        .arg(parts::codex_program(cache)?)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(60)
        .go()
}
