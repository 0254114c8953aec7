//! Tools that CI itself uses, pinned by version and stored in the cache.

use std::path::PathBuf;

use anyhow::Result;

use crate::cache::Cache;
use crate::install::{Install, Recipe};
use crate::run::Run;

/// Installs the spelling checker and returns its path.
pub fn typos(cache: &Cache) -> Result<PathBuf> {
    let recipe = Recipe::Python(&[&["typos==1.51.1"]]);
    ensure(cache, "typos-1.51.1", recipe, "bin/typos")
}

/// Installs the checker of dependencies: licences, bans, sources, advisories.
pub fn cargo_deny(cache: &Cache) -> Result<PathBuf> {
    let recipe = Recipe::Cargo {
        name: "cargo-deny",
        version: "0.20.2",
    };
    ensure(cache, "cargo-deny-0.20.2", recipe, "bin/cargo-deny")
}

/// Returns the path of the test runner, for direct calls: the machine's own if installed, otherwise
/// the cached one.
pub fn cargo_nextest(cache: &Cache) -> Result<PathBuf> {
    if Run::new("cargo-nextest")
        .args(["nextest", "--version"])
        .succeeds()
    {
        return Ok(PathBuf::from("cargo-nextest"));
    }
    let recipe = Recipe::Cargo {
        name: "cargo-nextest",
        version: "0.9.143",
    };
    ensure(cache, "cargo-nextest-0.9.143", recipe, "bin/cargo-nextest")
}

/// Installs the builder of the book, with search and without its web server.
pub fn mdbook(cache: &Cache) -> Result<PathBuf> {
    let recipe = Recipe::CargoFeatures {
        name: "mdbook",
        version: "0.5.4",
        features: "search",
    };
    ensure(cache, "mdbook-0.5.4", recipe, "bin/mdbook")
}

/// Installs the builder for other processors, and Zig, which it finds through the Python beside it.
pub fn cargo_zigbuild(cache: &Cache) -> Result<PathBuf> {
    let recipe = Recipe::Python(&[&["cargo-zigbuild==0.24.0", "ziglang==0.15.2"]]);
    ensure(cache, "cargo-zigbuild-0.24.0", recipe, "bin/cargo-zigbuild")
}

fn ensure(cache: &Cache, folder: &str, recipe: Recipe, program: &str) -> Result<PathBuf> {
    let _lock = cache.lock("tools")?;
    let folder = cache.tools().join(folder);
    Install {
        recipe,
        folder: &folder,
        node: None,
    }
    .ensure()?;
    Ok(folder.join(program))
}
