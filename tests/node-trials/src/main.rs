//! `node-trials`: several processes on one home, killed at random, through the real program.
//!
//! Each process is a server on stdio with its own client. Every client can use every thread,
//! regardless of its owner. When a process dies or ends, its clients are lost, and the clients of
//! the others continue. `cargo xtask prove nodes` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod concurrent_starts;
mod handover;
mod kills;
mod node;
mod records;
mod stopped_node;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use support::MockModel;

/// Prefix of a problem that is only a missed time limit.
const LATE: &str = "late: ";

/// Exit code if only time limits were missed (`EX_TEMPFAIL` of sysexits.h): CI retries then.
const LATE_CODE: u8 = 75;

/// Runs several processes on one home, and checks that no thread is lost or written by two of them.
#[derive(Parser)]
struct NodesArgs {
    /// Path of the program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// Number of processes that share the home.
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// Number of threads of all processes together.
    #[arg(long, default_value_t = 40)]
    threads: usize,
    /// Number of kills.
    #[arg(long, default_value_t = 200)]
    kills: usize,
    /// Number of simultaneous starts on an empty home.
    #[arg(long, default_value_t = 64)]
    starts: usize,
    /// Seed that determines the victims and the times of the kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<ExitCode> {
    let arguments = NodesArgs::parse();
    let raddle = std::path::absolute(&arguments.raddle)?;
    let mut problems = handover::run(&raddle)?;
    problems.extend(stopped_node::run(&raddle)?);
    problems.extend(kills::run(&raddle, &arguments)?);
    problems.extend(concurrent_starts::run(&raddle, arguments.starts)?);
    for problem in &problems {
        println!("WRONG: {problem}");
    }
    if problems.is_empty() {
        println!("every thread went on, with one owner at a time");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} wrongs", problems.len());
    let is_only_late = problems.iter().all(|it| it.starts_with(LATE));
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
        std::fs::write(folder.path().join("config.toml"), mock.config())?;
        Ok(Self {
            folder,
            _mock: mock,
        })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}
