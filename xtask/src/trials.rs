//! The local journal, killed, damaged, full, failing and huge, turns whose model fails, several processes on one
//! home, attempts to break out of the fence, and a hijacked model: slices in CI, all of it as proofs.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::repository::cargo;
use crate::run::{Run, on_path};

const PACKAGE: &str = "raddle-trials";
const ALWAYS_ENDS: &str = "always-ends";
const REJOIN: &str = "raddle-rejoin-trials";
const ESCAPES: &str = "raddle-escapes";
const MANY_NODES: &str = "many-nodes";

const CROWD: &str = "raddle-crowd-trials";
const ADVERSARY: &str = "raddle-adversary-trials";

/// How many kills of each kind, changed bits, and parts of the full size CI takes.
const KILLS: &str = "25";
const FLIPS: &str = "60";
const PART: &str = "100";

/// A measured line of the example `measure`: how it begins, the word before the number, and its limit.
struct Asked {
    line: &'static str,
    before: &'static str,
    limit: Limit,
}

#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

const ASKED: [Asked; 3] = [
    Asked {
        line: "power append:",
        before: "ratio ",
        limit: Limit::AtMost(1.5),
    },
    Asked {
        line: "group commit",
        before: "ratio ",
        limit: Limit::AtLeast(0.5),
    },
    Asked {
        line: "8-byte deltas at 100/s:",
        before: ": ",
        limit: Limit::AtMost(2048.0),
    },
];

/// What CI runs of it: a few of each.
pub fn slices(root: &Path, cache: &Cache) -> Result<()> {
    let random = ["crash", "--kills", KILLS, "--repeats", "0"];
    trial(root, cache, &random)?.minutes(5).go()?;
    let damage = ["damage", "--flips", FLIPS];
    trial(root, cache, &damage)?.minutes(5).go()?;
    let big = ["big", "--part", PART];
    trial(root, cache, &big)?.minutes(5).go()
}

/// Killed at 1,000 random moments, alone and beside another, and before every call that matters; then
/// with a disk that fails or is full.
pub fn crash(root: &Path, cache: &Cache) -> Result<()> {
    if !on_path("strace") {
        bail!(
            "strace is not installed, and nothing else stops a writer at a system call; install it"
        );
    }
    trial(root, cache, &["crash"])?.minutes(45).go()?;
    trial(root, cache, &["faults"])?.minutes(15).go()
}

/// 2,000 changed bits.
pub fn damage(root: &Path, cache: &Cache) -> Result<()> {
    trial(root, cache, &["damage"])?.minutes(55).go()
}

/// 5 GB in one thread, and 100,000 threads.
pub fn big(root: &Path, cache: &Cache) -> Result<()> {
    trial(root, cache, &["big"])?.minutes(55).go()
}

/// So many turns for each way of a model to fail, through this program.
pub fn always_ends(root: &Path, cache: &Cache, raddle: &Path, turns: &str) -> Result<()> {
    cargo(root)
        .args(["run", "--locked", "--profile", "ci"])
        .args(["--package", ALWAYS_ENDS, "--", "--turns", turns, "--raddle"])
        .arg(raddle)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(10)
        .go()
}

/// Clients cut off at so many records of a message, servers killed so many times, so many requests that two
/// clients answer at once, and every request sent again so many times, through this program.
pub fn rejoin(root: &Path, cache: &Cache, raddle: &Path, size: [&str; 4]) -> Result<()> {
    let [cuts, kills, races, again] = size;
    // Optimised, because its clients read a hundred million messages at full size.
    cargo(root)
        .args(["run", "--locked", "--profile", "sim", "--package", REJOIN])
        .args(["--", "--cuts", cuts, "--kills", kills])
        .args(["--races", races, "--again", again, "--raddle"])
        .arg(raddle)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(60)
        .go()
}

/// Processes of this program on one home, one of which is killed so often, and so many that start at once.
pub fn nodes(root: &Path, cache: &Cache, raddle: &Path, sizes: &[&str]) -> Result<()> {
    cargo(root)
        .args(["run", "--locked", "--profile", "ci"])
        .args(["--package", MANY_NODES, "--", "--raddle"])
        .arg(raddle)
        .args(sizes)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(30)
        .go()
}

/// Slow, hostile and many clients beside ordinary ones, or mixed load for a long time, through this program, in
/// such numbers.
pub fn crowd(root: &Path, cache: &Cache, raddle: &Path, words: &[&str]) -> Result<()> {
    cargo(root)
        .args(["run", "--locked", "--profile", "ci", "--package", CROWD])
        .arg("--")
        .args(words)
        .arg("--raddle")
        .arg(raddle)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(40)
        .go()
}

/// Every attempt to break out of the fence, in every arm.
pub fn escapes(root: &Path, cache: &Cache) -> Result<()> {
    cargo(root)
        .args(["run", "--locked", "--profile", "ci", "--package", ESCAPES])
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(10)
        .go()
}

/// Hostile workspaces, nobody attached, and a hijacked model that makes so many calls, against this program; and
/// what the same calls do where nothing holds them.
pub fn adversary(root: &Path, cache: &Cache, raddle: &Path, calls: &str) -> Result<()> {
    cargo(root)
        .args(["build", "--locked", "--profile", "ci"])
        .args(["--package", ADVERSARY])
        .env("CARGO_TARGET_DIR", cache.target())
        .go()?;
    let on = |words: &[&str]| {
        Run::new(cache.target().join("ci").join(ADVERSARY))
            .directory(root)
            .args(words)
            .arg("--raddle")
            .arg(raddle)
    };
    on(&["control"]).minutes(5).go()?;
    on(&["workspaces"]).minutes(5).go()?;
    on(&["unattended"]).minutes(5).go()?;
    on(&["model", "--calls", calls]).minutes(60).go()
}

/// What the fence costs a command that does nothing, as ratios.
pub fn fence_cost(root: &Path, cache: &Cache, raddle: &Path) -> Result<()> {
    cargo(root)
        .args(["run", "--locked", "--release", "--package", ESCAPES])
        .args(["--", "cost", "--helper"])
        .arg(raddle)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(10)
        .go()
}

/// Appends beside bare SQLite, held against what was asked for.
pub fn append(root: &Path, cache: &Cache) -> Result<()> {
    let measured = cargo(root)
        .args(["run", "--release", "--locked", "--package", "raddle-store"])
        .args(["--example", "measure"])
        .env("CARGO_TARGET_DIR", cache.target())
        .output()?;
    print!("{measured}");
    let mut missed = Vec::new();
    for asked in &ASKED {
        let found = asked.find(&measured)?;
        let (kept, word, limit) = match asked.limit {
            Limit::AtMost(limit) => (found <= limit, "at most", limit),
            Limit::AtLeast(limit) => (found >= limit, "at least", limit),
        };
        let verdict = if kept { "ok" } else { "MISSED" };
        println!("{:<26}{found:>8}  {word} {limit:<8}{verdict}", asked.line);
        if !kept {
            missed.push(asked.line);
        }
    }
    if !missed.is_empty() {
        bail!("missed: {}", missed.join(", "));
    }
    Ok(())
}

impl Asked {
    fn find(&self, measured: &str) -> Result<f64> {
        let line = measured.lines().find(|line| line.starts_with(self.line));
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

/// Built like the simulator: fast, with the core's own assertions on.
fn trial(root: &Path, cache: &Cache, words: &[&str]) -> Result<Run> {
    cargo(root)
        .args([
            "build",
            "--locked",
            "--profile",
            "sim",
            "--package",
            PACKAGE,
        ])
        .env("CARGO_TARGET_DIR", cache.target())
        .go()?;
    Ok(Run::new(cache.target().join("sim").join(PACKAGE))
        .directory(root)
        .args(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: &str = "\
power append: 210µs (median of 500), bare insert with sync: 150µs, ratio 1.40
group commit from 1000 threads: 9 appends/s, bare batches of 1000: 20 inserts/s, ratio 0.45
8-byte deltas at 100/s: 1234 bytes written for each, 99 of them to pages of the disk's cache
";

    #[test]
    fn numbers_are_read_off_what_was_measured() {
        let found: Vec<f64> = ASKED
            .iter()
            .map(|asked| asked.find(MEASURED).expect("it is there"))
            .collect();
        assert_eq!(found, [1.40, 0.45, 1234.0]);
    }

    #[test]
    fn a_line_that_is_not_there_is_no_success() {
        for asked in &ASKED {
            let without = MEASURED.replace(asked.line, "something else:");
            assert!(asked.find(&without).is_err());
        }
    }
}
