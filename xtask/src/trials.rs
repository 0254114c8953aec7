//! Trials: the local journal killed, damaged, full, failing and huge, turns whose model fails,
//! several processes on one home, attempts to escape the sandbox, and a hijacked model. CI runs
//! slices, the proofs run all of it.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::repository::cargo;
use crate::run::{Punctuality, Run, figure, on_path};
use crate::workspace;

const PACKAGE: &str = "journal-trials";
const TURN_TRIALS: &str = "turn-trials";
const REJOIN: &str = "rejoin-trials";
const ESCAPES: &str = "sandbox-escapes";
const MANY_NODES: &str = "node-trials";
const FLEET: &str = "fleet-trials";

const CROWD: &str = "crowd-trials";
const ADVERSARY: &str = "adversary-trials";

/// Build profiles of slices in CI, and of proofs.
pub const SLICE: &str = workspace::PROFILE;
pub const FULL_SIZE: &str = "sim";

/// Numbers of kills of each kind, changed bits, and parts of the full size in CI.
const KILLS: &str = "25";
const FLIPS: &str = "60";
const PART: &str = "100";

/// A measured line of the example `measure`: its prefix, the word before the number, and its limit.
struct MeasuredLine {
    line: &'static str,
    before: &'static str,
    limit: Limit,
}

#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

const MEASURED_LINES: [MeasuredLine; 3] = [
    MeasuredLine {
        line: "power append:",
        before: "ratio ",
        limit: Limit::AtMost(1.5),
    },
    MeasuredLine {
        line: "group commit",
        before: "ratio ",
        limit: Limit::AtLeast(0.5),
    },
    MeasuredLine {
        line: "8-byte deltas at 100/s:",
        before: ": ",
        limit: Limit::AtMost(2048.0),
    },
];

/// Runs the slices of CI: a few of each trial.
pub fn slices(root: &Path, cache: &Cache) -> Result<()> {
    let random = ["crash", "--kills", KILLS, "--repeats", "0"];
    trial(root, cache, SLICE, &random)?.minutes(5).go()?;
    let damage = ["damage", "--flips", FLIPS];
    trial(root, cache, SLICE, &damage)?.minutes(5).go()?;
    let big = ["big", "--part", PART];
    trial(root, cache, SLICE, &big)?.minutes(5).go()
}

/// Kills writers at 1,000 random moments, alone and beside another, and before every relevant
/// system call; then runs with a failing or full disk.
pub fn crash(root: &Path, cache: &Cache) -> Result<()> {
    if !on_path("strace") {
        bail!(
            "strace is not installed, and nothing else stops a writer at a system call; install it"
        );
    }
    trial(root, cache, FULL_SIZE, &["crash"])?
        .minutes(90)
        .go()?;
    trial(root, cache, FULL_SIZE, &["faults"])?.minutes(15).go()
}

/// Changes 2,000 single bits of a journal.
pub fn damage(root: &Path, cache: &Cache) -> Result<()> {
    trial(root, cache, FULL_SIZE, &["damage"])?.minutes(55).go()
}

/// Writes 5 GB into one thread, and 100,000 threads.
pub fn big(root: &Path, cache: &Cache) -> Result<()> {
    trial(root, cache, FULL_SIZE, &["big"])?.minutes(55).go()
}

/// Runs this number of turns for each kind of model failure, through this program, and turns on a
/// full disk.
pub fn always_ends(root: &Path, cache: &Cache, raddle: &Path, turns: &str) -> Result<Punctuality> {
    failing_turns(root, cache, raddle, turns)?.go_timed()
}

/// The same through a program whose threads are not on the disk of its home, which is not filled.
pub fn always_ends_remotely(
    root: &Path,
    cache: &Cache,
    raddle: &Path,
    turns: &str,
) -> Result<Punctuality> {
    let run = failing_turns(root, cache, raddle, turns)?;
    run.arg("--remote-store").go_timed()
}

fn failing_turns(root: &Path, cache: &Cache, raddle: &Path, turns: &str) -> Result<Run> {
    let run = program(root, cache, SLICE, TURN_TRIALS)?;
    let run = run.args(["--turns", turns, "--raddle"]).arg(raddle);
    Ok(run.minutes(10))
}

/// Disconnects clients at records of a message, kills servers, lets two clients answer requests at
/// once, and repeats every request, in these numbers through this program.
///
/// `profile` is that of the clients, which read a hundred million messages at full size.
pub fn rejoin(
    root: &Path,
    cache: &Cache,
    raddle: &Path,
    size: [&str; 4],
    profile: &str,
) -> Result<()> {
    let [cuts, kills, races, again] = size;
    program(root, cache, profile, REJOIN)?
        .args(["--cuts", cuts, "--kills", kills])
        .args(["--races", races, "--again", again, "--raddle"])
        .arg(raddle)
        .minutes(60)
        .go()
}

/// Runs processes of this program on one home, with these numbers of kills and of simultaneous
/// starts.
pub fn nodes(root: &Path, cache: &Cache, raddle: &Path, sizes: &[&str]) -> Result<Punctuality> {
    program(root, cache, SLICE, MANY_NODES)?
        .arg("--raddle")
        .arg(raddle)
        .args(sizes)
        .minutes(30)
        .go_timed()
}

/// Runs the journal on PostgreSQL under these faults, with these seeds each. A folder keeps results,
/// so that seeds that passed are not run again.
pub fn fleet_faults(
    root: &Path,
    cache: &Cache,
    faults: &[&str],
    seeds: &str,
    folder: Option<&Path>,
) -> Result<()> {
    let profile = folder.map_or(SLICE, |_| FULL_SIZE);
    let mut run = program(root, cache, profile, FLEET)?.args([
        "--seed",
        seeds,
        "--script",
        "tests/fleet/pg-cluster.sh",
    ]);
    for fault in faults {
        run = run.args(["--fault", fault]);
    }
    if let Some(folder) = folder {
        run = run.arg("--resume").arg("--folder").arg(folder);
    }
    run.minutes(240).go()
}

/// Runs slow, hostile and many clients beside ordinary ones, or mixed load for a long time, through
/// this program, in these numbers.
pub fn crowd(root: &Path, cache: &Cache, raddle: &Path, words: &[&str]) -> Result<Punctuality> {
    program(root, cache, SLICE, CROWD)?
        .args(words)
        .arg("--raddle")
        .arg(raddle)
        .minutes(40)
        .go_timed()
}

/// Runs every attempt to escape the sandbox, in every arm.
pub fn escapes(root: &Path, cache: &Cache) -> Result<()> {
    program(root, cache, SLICE, ESCAPES)?.minutes(10).go()
}

/// Runs hostile workspaces, requests without a client, and a hijacked model with this number of
/// calls, against this program.
pub fn adversary(root: &Path, cache: &Cache, raddle: &Path, calls: &str) -> Result<()> {
    hostile_workspaces(root, cache, raddle)?;
    in_time(unattended(root, cache, raddle)?)?;
    hijacked_model(root, cache, raddle, calls)
}

/// Runs the attacks without protection, which must succeed; then workspaces with injected
/// instructions.
pub fn hostile_workspaces(root: &Path, cache: &Cache, raddle: &Path) -> Result<()> {
    for words in [&["control"], &["workspaces"]] {
        let trial = adversary_trial(root, cache, words)?;
        trial.arg("--raddle").arg(raddle).minutes(5).go()?;
    }
    Ok(())
}

/// Sends requests that no client is there to answer.
pub fn unattended(root: &Path, cache: &Cache, raddle: &Path) -> Result<Punctuality> {
    let trial = adversary_trial(root, cache, &["unattended"])?;
    trial.arg("--raddle").arg(raddle).minutes(5).go_timed()
}

/// Runs a hijacked model with this number of calls.
pub fn hijacked_model(root: &Path, cache: &Cache, raddle: &Path, calls: &str) -> Result<()> {
    let trial = adversary_trial(root, cache, &["model", "--calls", calls])?;
    trial.arg("--raddle").arg(raddle).minutes(60).go()
}

fn adversary_trial(root: &Path, cache: &Cache, words: &[&str]) -> Result<Run> {
    Ok(program(root, cache, SLICE, ADVERSARY)?.args(words))
}

/// Fails on a late result. For proofs, which run alone on a machine.
pub fn in_time(punctuality: Punctuality) -> Result<()> {
    if punctuality == Punctuality::Late {
        bail!("everything was right but a time limit");
    }
    Ok(())
}

/// Measures the overhead of the sandbox for a command that does nothing, as ratios.
pub fn sandbox_cost(root: &Path, cache: &Cache, raddle: &Path) -> Result<()> {
    cargo(root)
        .args(["run", "--locked", "--release", "--package", ESCAPES])
        .args(["--", "cost", "--helper"])
        .arg(raddle)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(10)
        .go()
}

/// Measures appends beside bare SQLite, and compares them with the targets.
pub fn append(root: &Path, cache: &Cache) -> Result<()> {
    let output = cargo(root)
        .args(["run", "--release", "--locked", "--package", "raddle-store"])
        .args(["--example", "measure"])
        .env("CARGO_TARGET_DIR", cache.target())
        .output()?;
    print!("{output}");
    let mut missed = Vec::new();
    for expected in &MEASURED_LINES {
        let value = expected.find(&output)?;
        let (is_within_limit, word, limit) = match expected.limit {
            Limit::AtMost(limit) => (value <= limit, "at most", limit),
            Limit::AtLeast(limit) => (value >= limit, "at least", limit),
        };
        let verdict = if is_within_limit { "ok" } else { "MISSED" };
        figure(&format!(
            "{:<26}{value:>8}  {word} {limit:<8}{verdict}",
            expected.line
        ));
        if !is_within_limit {
            missed.push(expected.line);
        }
    }
    if !missed.is_empty() {
        bail!("missed: {}", missed.join(", "));
    }
    Ok(())
}

impl MeasuredLine {
    fn find(&self, output: &str) -> Result<f64> {
        let line = output.lines().find(|line| line.starts_with(self.line));
        let number = line.and_then(|line| {
            let (_, rest) = line.split_once(self.before)?;
            rest.split_whitespace().next()?.parse().ok()
        });
        number.with_context(|| {
            let Self { line, before, .. } = self;
            format!("the example printed no line `{line}` with a number after `{before}`")
        })
    }
}

fn trial(root: &Path, cache: &Cache, profile: &str, words: &[&str]) -> Result<Run> {
    Ok(program(root, cache, profile, PACKAGE)?.args(words))
}

/// Builds the program of a trial. A slice uses the one that is built together with the tests.
fn program(root: &Path, cache: &Cache, profile: &str, package: &str) -> Result<Run> {
    if profile == SLICE {
        return workspace::program(root, cache, package);
    }
    cargo(root)
        .args(["build", "--locked", "--profile", profile])
        .args(["--package", package])
        .env("CARGO_TARGET_DIR", cache.target())
        .go()?;
    let program = cache.target().join(profile).join(package);
    Ok(Run::new(program).directory(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
power append: 210µs (median of 500), bare insert with sync: 150µs, ratio 1.40
group commit from 1000 threads: 9 appends/s, bare batches of 1000: 20 inserts/s, ratio 0.45
8-byte deltas at 100/s: 1234 bytes written for each, 99 of them to pages of the disk's cache
";

    #[test]
    fn numbers_are_read_from_the_output() {
        let values: Vec<f64> = MEASURED_LINES
            .iter()
            .map(|expected| expected.find(OUTPUT).expect("it is there"))
            .collect();
        assert_eq!(values, [1.40, 0.45, 1234.0]);
    }

    #[test]
    fn missing_line_is_an_error() {
        for expected in &MEASURED_LINES {
            let without = OUTPUT.replace(expected.line, "something else:");
            assert!(expected.find(&without).is_err());
        }
    }
}
