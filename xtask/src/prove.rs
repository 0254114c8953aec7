//! Full-size proofs: what CI samples, run at length. At most an hour each.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::repository::{self, cargo};
use crate::run::Run;
use crate::{fuzz, parts, tools};

/// Name, and what it shows.
const PROOFS: &[(&str, &str)] = &[
    ("fuzz", "every fuzz target for 10 minutes, or `--minutes N`"),
    ("hostile", "50,000 hostile frames on each transport"),
    (
        "contract",
        "200 rounds of generated instances against the schema of the real Codex",
    ),
];

pub fn command(mut arguments: Arguments) -> Result<()> {
    if arguments.flag("--list") {
        arguments.end()?;
        for (name, about) in PROOFS {
            println!("{name:<10}{about}");
        }
        return Ok(());
    }
    let minutes = arguments.number("--minutes")?;
    if minutes == Some(0) {
        bail!("--minutes takes at least 1: to libFuzzer, no time at all means forever");
    }
    let name = arguments.word();
    arguments.end()?;

    let root = repository::root()?;
    let cache = Cache::open()?;
    let _lock = cache.lock("ci")?;
    match name.as_deref() {
        Some("fuzz") => fuzz::run(
            &root,
            &cache,
            Duration::from_secs(minutes.unwrap_or(10) * 60),
        ),
        Some(_) if minutes.is_some() => bail!("--minutes is for the proof `fuzz`"),
        Some("hostile") => hostile(&root, &cache),
        Some("contract") => contract(&root, &cache),
        _ => bail!("name a proof; `cargo xtask prove --list` lists them"),
    }
}

fn hostile(root: &Path, cache: &Cache) -> Result<()> {
    let nextest = tools::cargo_nextest(cache)?;
    Run::new(nextest)
        .directory(root)
        .args([
            "nextest",
            "run",
            "--package",
            "raddle",
            "--all-features",
            "--locked",
        ])
        // The profile of .config/nextest.toml with room for tests of many minutes.
        .args(["--cargo-profile", "ci", "--profile", "prove"])
        .env("CARGO_TARGET_DIR", cache.target())
        .env("RADDLE_HOSTILE_FRAMES", "50000")
        .minutes(60)
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
