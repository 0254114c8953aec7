//! Proofs of the snapshots and restores of a workspace. Their slices are tests of the crate.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cache::Cache;
use crate::repository::cargo;
use crate::run::{Run, on_path};
use crate::{tools, trials};

const PACKAGE: &str = "raddle-workspace";

/// Number of random sessions; five of them have a large file or many files.
const SESSIONS: &str = "500";

/// Kills a restore at each of its system calls, and lets each of them fail.
pub fn restore_crash(root: &Path, cache: &Cache) -> Result<()> {
    if !on_path("strace") {
        bail!(
            "strace is not installed, and nothing else stops a restore at a system call; install it"
        );
    }
    test(root, cache, "restore_with_a_fault_at_any_call")?
        .env("RADDLE_RESTORE_CRASH", "full")
        .go()
}

/// Compares the diffs and restores of random sessions with plain reading.
pub fn truth(root: &Path, cache: &Cache) -> Result<()> {
    test(root, cache, "random_sessions_tell_the_truth")?
        .env("RADDLE_WORKSPACE_SEEDS", SESSIONS)
        .go()
}

/// Measures snapshots beside a bare walk and beside git.
pub fn cost(root: &Path, cache: &Cache) -> Result<()> {
    cargo(root)
        .args(["run", "--release", "--locked", "--package", PACKAGE])
        .args(["--example", "measure"])
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(60)
        .go()
}

/// Prepares a test of the crate at full size.
fn test(root: &Path, cache: &Cache, name: &str) -> Result<Run> {
    Ok(Run::new(tools::cargo_nextest(cache)?)
        .directory(root)
        .args(["nextest", "run", "--locked", "--package", PACKAGE])
        .args(["--cargo-profile", trials::FULL_SIZE, "--profile", "prove"])
        .args(["--no-tests", "fail", "--no-capture"])
        .arg(name)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(60))
}
