//! `node-trials`: several processes on one home, killed at random, through the real program.
//!
//! Each process is a server on stdio with a client of its own. Whoever has a thread, every client can use it;
//! when that process dies or ends, its clients are gone, and the clients of the others go on.
//! `cargo xtask prove nodes` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod concurrent_starts;
mod handover;
mod kills;
mod node;
mod process;
mod records;
mod rng;
mod stopped_node;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::process::MockModel;

/// Begins the text of a wrong that is nothing but a missed time limit.
const LATE: &str = "late: ";

/// Exit code where nothing else was wrong (`EX_TEMPFAIL` of sysexits.h): CI tries again then.
const LATE_CODE: u8 = 75;

/// Runs several processes on one home, and sees that no thread is lost or written by two.
#[derive(Parser)]
struct NodesArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// How many processes share the home.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// How many threads they have together.
    #[arg(long, default_value_t = 40)]
    threads: usize,
    /// How often one of them is killed.
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// How many are started at once on an empty home.
    #[arg(long, default_value_t = 64)]
    starts: usize,
    /// Decides who is killed, and when.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<ExitCode> {
    let arguments = NodesArgs::parse();
    let raddle = std::path::absolute(&arguments.raddle)?;
    let mut wrongs = handover::run(&raddle)?;
    wrongs.extend(stopped_node::run(&raddle)?);
    wrongs.extend(kills::run(&raddle, &arguments)?);
    wrongs.extend(concurrent_starts::run(&raddle, arguments.starts)?);
    for wrong in &wrongs {
        println!("WRONG: {wrong}");
    }
    if wrongs.is_empty() {
        println!("every thread went on, with one owner at a time");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} wrongs", wrongs.len());
    let is_only_late = wrongs.iter().all(|it| it.starts_with(LATE));
    Ok(if is_only_late {
        ExitCode::from(LATE_CODE)
    } else {
        ExitCode::FAILURE
    })
}

/// A home whose model is a mock.
struct MockHome {
    folder: tempfile::TempDir,
    _mock: MockModel,
}

impl MockHome {
    fn new(raddle: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mock = MockModel::start(raddle, folder.path())?;
        let config = format!(
            "model = \"mock\"\nmodel_provider = \"mock\"\n\n[model_providers.mock]\nbase_url = \"{}\"\n",
            mock.address
        );
        std::fs::write(folder.path().join("config.toml"), config)?;
        Ok(Self {
            folder,
            _mock: mock,
        })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}
