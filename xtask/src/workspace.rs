//! The one selection of packages from which CI builds its tests and trials.
//!
//! Cargo unites the features of what is built together: the same crate, asked for by another package alone, has
//! other features and is built again. So the programs of the trials are built with the tests of all packages,
//! and share every crate with them.

use std::path::Path;

use anyhow::Result;

use crate::cache::Cache;
use crate::run::Run;

/// Built apart from everything else: its feature `planted` adds bugs to the core.
pub const SIMULATOR: &str = "raddle-sim";

/// The profile of tests and slices.
pub const PROFILE: &str = "ci";

/// The selection, as arguments of cargo.
pub const SELECTION: [&str; 4] = ["--locked", "--workspace", "--exclude", SIMULATOR];

/// A program of the workspace, built with the tests.
pub fn program(root: &Path, cache: &Cache, name: &str) -> Result<Run> {
    Run::new("cargo")
        .directory(root)
        .args(["build", "--profile", PROFILE, "--bins", "--tests"])
        .args(SELECTION)
        .env("CARGO_TARGET_DIR", cache.target())
        .go()?;
    let program = cache.target().join(PROFILE).join(name);
    Ok(Run::new(program).directory(root))
}
