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
    let keys = SigningKeys {
        openssh: key(&mut arguments, "--sign")?,
        minisign: key(&mut arguments, "--minisign")?,
    };
    let url = arguments.value("--url")?;
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
    let mut run = writer(&root, &raddle, &std::path::absolute(out)?);
    if let Some(key) = keys.openssh {
        run = run.arg("--sign").arg(key);
    }
    if let Some(key) = keys.minisign {
        run = run.arg("--minisign").arg(key);
    }
    if let Some(url) = url {
        run = run.arg("--url").arg(url);
    }
    run.go()
}

/// Keys that sign the checksums.
struct SigningKeys {
    openssh: Option<PathBuf>,
    minisign: Option<PathBuf>,
}

fn key(arguments: &mut Arguments, option: &str) -> Result<Option<PathBuf>> {
    let path = arguments.value(option)?;
    Ok(path.map(std::path::absolute).transpose()?)
}

/// Writes the packages into this directory, which is recreated.
pub fn write(root: &Path, raddle: &Path, out: &Path) -> Result<()> {
    writer(root, raddle, out).go()
}

fn writer(root: &Path, raddle: &Path, out: &Path) -> Run {
    python(root, "packages/package.py")
        .arg("--raddle")
        .arg(raddle)
        .arg("--out")
        .arg(out)
}

/// Writes the packages, then installs each as a user without privileges.
pub fn check(root: &Path, cache: &Cache, raddle: &Path) -> Result<()> {
    let out = cache.target().join("packages");
    write(root, raddle, &out)?;
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
