//! The binary for Linux on aarch64: compiled with Zig as C compiler and linker, and tried in an
//! emulator.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::run::Run;
use crate::{parts, repository, tools};

const TARGET: &str = "aarch64-unknown-linux-musl";

pub fn command(arguments: Arguments) -> Result<()> {
    arguments.end()?;
    let root = repository::root()?;
    let cache = Cache::open()?;
    let _lock = cache.lock("ci")?;
    let emulator = parts::emulator()?;
    ensure_target(&root)?;
    let zigbuild = tools::cargo_zigbuild(&cache)?;
    let programs = zigbuild.parent().context("the tool has no folder")?;
    Run::new(&zigbuild)
        .directory(&root)
        // It runs Zig as `python3 -m ziglang`.
        .path_first(programs)
        .args(["zigbuild", "--release", "--locked"])
        .args(["--package", "raddle", "--target", TARGET])
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(90)
        .go()?;
    let raddle = cache.target().join(TARGET).join("release/raddle");
    let bytes = fs::metadata(&raddle)?.len();
    println!("{}: {:.1} MB", raddle.display(), bytes as f64 / 1e6);
    Run::new("python3")
        .directory(&root)
        .args(["packages/emulated.py", "--emulator", emulator, "--raddle"])
        .arg(&raddle)
        .minutes(10)
        .go()
}

fn ensure_target(root: &Path) -> Result<()> {
    let libraries = Run::new("rustc")
        .directory(root)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()?;
    if fs::exists(libraries.trim())? {
        return Ok(());
    }
    Run::new("rustup")
        .directory(root)
        .args(["target", "add", TARGET])
        .minutes(10)
        .go()
}
