//! Reproducibility check: two clean release builds of one commit, in two directories, must be
//! identical.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::cache::{Cache, remove_folder};
use crate::ci::{self, MUSL};
use crate::parts;
use crate::repository::cargo;
use crate::run::{Run, figure};

/// Names of different lengths, so that a path in the binary would shift the data after it.
const FOLDERS: [&str; 2] = ["one", "the-other-one"];

/// Builds of one commit that do not differ.
pub struct CleanBuilds {
    /// Clone of the commit, in which the binary was built.
    pub source: PathBuf,
    pub binary: PathBuf,
    /// Directory of all builds.
    top: PathBuf,
}

pub fn prove(root: &Path, cache: &Cache) -> Result<()> {
    let builds = CleanBuilds::compare(root, cache)?;
    figure("two builds in two folders, and not one byte differs");
    builds.remove()
}

impl CleanBuilds {
    /// Builds the last commit in each directory; fails if the builds differ.
    pub fn compare(root: &Path, cache: &Cache) -> Result<Self> {
        parts::install(cache, &[parts::DEBIAN.to_owned()])?;
        let changed = Run::new("git")
            .directory(root)
            .args(["status", "--porcelain"])
            .output()?;
        if !changed.is_empty() {
            println!("these builds do not contain uncommitted changes:\n{changed}");
        }
        let top = cache.target().join("reproducible");
        remove_folder(&top)?;
        let mut built = Vec::new();
        for name in FOLDERS {
            let binary = build(root, &top.join(name))?;
            let sum = Run::new("sha256sum").arg(&binary).output()?;
            print!("{sum}");
            built.push(binary);
        }
        let same = fs::read(&built[0])? == fs::read(&built[1])?;
        if !same {
            bail!(
                "the builds differ; they are kept, see `cmp -l {} {}`",
                built[0].display(),
                built[1].display()
            );
        }
        Ok(Self {
            source: top.join(FOLDERS[0]),
            binary: built.swap_remove(0),
            top,
        })
    }

    pub fn remove(self) -> Result<()> {
        remove_folder(&self.top)
    }
}

/// Clones the last commit into this directory and builds it there.
fn build(root: &Path, folder: &Path) -> Result<PathBuf> {
    Run::new("git")
        .args(["clone", "--quiet"])
        .arg(root)
        .arg(folder)
        .go()?;
    let target = folder.join("target");
    ci::release_build(cargo(folder))
        .env("CARGO_TARGET_DIR", &target)
        .go()?;
    Ok(target.join(MUSL).join("release/raddle"))
}
