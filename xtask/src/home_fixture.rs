//! `cargo xtask home-fixture`: a home written by an old binary, which later versions must open.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::repository;
use crate::run::Run;

pub fn command(mut arguments: Arguments) -> Result<()> {
    let raddle = arguments.value("--raddle")?.map(PathBuf::from);
    let out = arguments.value("--out")?.map(PathBuf::from);
    arguments.end()?;
    let raddle = raddle.context("say which binary writes it: `--raddle BIN`")?;
    let out = out.context("say where the fixture goes: `--out FOLDER`")?;
    Run::new("python3")
        .directory(&repository::root()?)
        .args(["-B", "tests/home-fixture/write.py", "--raddle"])
        .arg(std::path::absolute(raddle)?)
        .arg("--out")
        .arg(std::path::absolute(out)?)
        .minutes(5)
        .go()
}
