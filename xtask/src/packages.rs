//! Packages that distribute the binary to users without a compiler: written, and tested as a new
//! user would.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::run::Run;
use crate::{ci, parts, repository};

pub fn command(mut arguments: Arguments) -> Result<()> {
    let raddle = arguments.value("--raddle")?.map(PathBuf::from);
    let key = arguments.value("--sign")?.map(PathBuf::from);
    let Some(out) = arguments.value("--out")? else {
        bail!("say where the packages go: `cargo xtask package --out FOLDER`");
    };
    arguments.end()?;
    let root = repository::root()?;
    let raddle = match raddle {
        Some(path) => std::path::absolute(path)?,
        None => {
            let cache = Cache::open()?;
            let _lock = cache.lock("ci")?;
            parts::install(&cache, &[parts::DEBIAN.to_owned()])?;
            ci::release(&cache)?
        }
    };
    let key = key.map(std::path::absolute).transpose()?;
    write(&root, &raddle, &std::path::absolute(out)?, key.as_deref())
}

/// Writes the packages into this directory, which is recreated, and signs their checksums if a key
/// is given.
pub fn write(root: &Path, raddle: &Path, out: &Path, key: Option<&Path>) -> Result<()> {
    let mut run = python(root, "packages/package.py")
        .arg("--raddle")
        .arg(raddle)
        .arg("--out")
        .arg(out);
    if let Some(key) = key {
        run = run.arg("--sign").arg(key);
    }
    run.go()
}

/// Writes the packages, then installs each as a user without privileges.
pub fn check(root: &Path, cache: &Cache, raddle: &Path) -> Result<()> {
    let out = cache.target().join("packages");
    write(root, raddle, &out, None)?;
    python(root, "packages/try.py")
        .arg("--raddle")
        .arg(raddle)
        .arg("--packages")
        .arg(out)
        .arg("--parts")
        .arg(cache.parts())
        .go()
}

fn python(root: &Path, program: &str) -> Run {
    Run::new("python3").directory(root).arg(program).minutes(5)
}
