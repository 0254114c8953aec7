//! The single selection of packages from which CI builds its tests and trials.
//!
//! Cargo unifies the features of packages that are built together: the same crate, requested by
//! another package alone, has other features and is built again. So the programs of the trials are
//! built with the tests of all packages, and share every crate with them.

use std::path::Path;

use anyhow::Result;

use crate::cache::Cache;
use crate::run::Run;

/// Package that is built separately: its feature `planted` adds bugs to the core.
pub const SIMULATOR: &str = "simulator";

/// Build profile of tests and slices.
pub const PROFILE: &str = "ci";

/// Selection of packages and features, as arguments of cargo. The journal of fleets is tested in the
/// same build; the binary that users get is built without it.
pub const SELECTION: [&str; 6] = [
    "--locked",
    "--workspace",
    "--exclude",
    SIMULATOR,
    "--features",
    "raddle/fleet",
];

/// Builds the programs of the workspace with the tests.
pub fn build(root: &Path, cache: &Cache) -> Result<()> {
    Run::new("cargo")
        .directory(root)
        .args(["build", "--profile", PROFILE, "--bins", "--tests"])
        .args(SELECTION)
        .env("CARGO_TARGET_DIR", cache.target())
        .go()
}

/// Returns a program of the workspace that was already built.
pub fn built(root: &Path, cache: &Cache, name: &str) -> Run {
    Run::new(cache.target().join(PROFILE).join(name)).directory(root)
}

/// Builds a program of the workspace and returns it.
pub fn program(root: &Path, cache: &Cache, name: &str) -> Result<Run> {
    build(root, cache)?;
    Ok(built(root, cache, name))
}
