//! `fleet-trials`: the journal on PostgreSQL under faults, and a checker of histories.
//!
//! A run is one seed and one fault. Several nodes, which are processes of this program, write a few
//! threads and take them from each other, while the fault happens. Each node writes what it intends
//! and what was acknowledged to a history. The checker compares the histories with the final logs.
//! `cargo xtask prove fleet-faults` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod checker;
mod excerpt;
mod fault;
mod history;
mod live;
mod node;
mod proxy;
mod results;
mod run;
mod server;
mod turn;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use tokio::runtime::Runtime;

use checker::HistoryFigures;
use fault::Fault;
use node::NodeProcessArgs;
use results::{ResultsFile, SeedResult};
use run::{RunEnvironment, RunHistory};
use server::{DatabaseServer, ServerKind};

/// Runs the journal on PostgreSQL under faults, and checks the histories.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct FleetTrialArgs {
    #[command(subcommand)]
    command: Option<FleetTrialCommand>,
    #[command(flatten)]
    runs: Option<FaultRunArgs>,
}

#[derive(Subcommand)]
enum FleetTrialCommand {
    /// Write threads, as ordered on stdin; started by the trial.
    #[command(hide = true)]
    Node(NodeProcessArgs),
}

#[derive(clap::Args)]
struct FaultRunArgs {
    /// Fault; repeatable.
    #[arg(long, value_enum, required = true)]
    fault: Vec<Fault>,
    /// Seeds, as `0..200`.
    #[arg(long, value_parser = seeds)]
    seed: Range<u64>,
    /// `tests/fleet/pg-cluster.sh`.
    #[arg(long)]
    script: PathBuf,
    /// Folder of the results and of the histories of failed runs.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Skip seeds that passed, according to the results.
    #[arg(long)]
    resume: bool,
}

fn seeds(text: &str) -> Result<Range<u64>> {
    let (from, to) = text
        .split_once("..")
        .context("not a range such as 0..200")?;
    Ok(from.parse()?..to.parse()?)
}

fn main() -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let arguments = FleetTrialArgs::parse();
    if let Some(FleetTrialCommand::Node(node)) = arguments.command {
        runtime.block_on(node.run())?;
        return Ok(ExitCode::SUCCESS);
    }
    let runs = arguments.runs.context("name a fault")?;
    let temporary = tempfile::tempdir()?;
    let folder = runs.folder.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder)?;
    let mut is_passed = true;
    // Faults of the same kind of server share one.
    let mut server = None;
    for fault in &runs.fault {
        is_passed &= run_fault(&runtime, &runs, *fault, folder, &mut server)?;
    }
    if !is_passed && runs.folder.is_none() {
        let kept = temporary.keep();
        println!("the histories are in {}", kept.display());
    }
    Ok(match is_passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs all seeds of a fault. Returns whether they passed.
fn run_fault(
    runtime: &Runtime,
    runs: &FaultRunArgs,
    fault: Fault,
    folder: &Path,
    server: &mut Option<DatabaseServer>,
) -> Result<bool> {
    let results = ResultsFile::new(folder);
    let passed = match runs.resume {
        true => results.passed(&fault.name()),
        false => Default::default(),
    };
    let left: Vec<u64> = runs
        .seed
        .clone()
        .filter(|it| !passed.contains(it))
        .collect();
    let mut done: Vec<SeedResult> = results.read(&fault.name());
    done.retain(|it| runs.seed.contains(&it.seed) && passed.contains(&it.seed));
    if !left.is_empty() {
        let running = server.take().filter(|it| it.kind == fault.server());
        let running = match running {
            Some(running) => running,
            None => DatabaseServer::start(&runs.script, fault.server())?,
        };
        let server = server.insert(running);
        let environment = RunEnvironment {
            runtime,
            server,
            folder,
        };
        for seed in left {
            let result = run_seed(&environment, fault, seed);
            results.append(&result)?;
            done.push(result);
        }
    }
    let mut figures = HistoryFigures::default();
    let failed = done.iter().filter(|it| !it.is_passed()).count();
    done.iter().for_each(|it| figures += it.figures);
    println!("figure: {}", summary(fault, &figures, failed));
    Ok(failed == 0)
}

fn run_seed(environment: &RunEnvironment<'_>, fault: Fault, seed: u64) -> SeedResult {
    let start = Instant::now();
    let mut result = SeedResult {
        fault: fault.name(),
        seed,
        seconds: 0,
        figures: HistoryFigures::default(),
        violations: Vec::new(),
        error: None,
    };
    match run::run(environment, fault, seed) {
        Ok(RunHistory {
            verdict,
            lines,
            folder,
        }) => {
            result.figures = verdict.figures;
            if let Some(first) = verdict.violations.first() {
                let count = verdict.violations.len();
                println!("seed {seed}, fault {}: {count} violations", fault.name());
                for violation in verdict.violations.iter().take(10) {
                    println!(
                        "  thread {} record {}: {:?}",
                        violation.thread, violation.seq, violation.promise
                    );
                }
                for line in excerpt::excerpt(&lines, first) {
                    println!("  {line}");
                }
                println!("  the history is in {}", folder.display());
            } else {
                // A history is needed only to understand a failure.
                let _ = std::fs::remove_dir_all(&folder);
            }
            result.violations = verdict.violations;
        }
        Err(error) => {
            println!("seed {seed}, fault {}: {error:#}", fault.name());
            result.error = Some(format!("{error:#}"));
        }
    }
    result.seconds = start.elapsed().as_secs();
    let HistoryFigures {
        acknowledged,
        unknown,
        lost_records,
        ..
    } = result.figures;
    println!(
        "seed {seed}, fault {}: {} in {} s, {acknowledged} appends acknowledged, {unknown} unknown, {lost_records} deltas lost",
        fault.name(),
        if result.is_passed() {
            "passed"
        } else {
            "FAILED"
        },
        result.seconds,
    );
    result
}

fn summary(fault: Fault, figures: &HistoryFigures, failed: usize) -> String {
    let server = match fault.server() {
        ServerKind::Single | ServerKind::SingleWithClock => "one server",
        ServerKind::Cluster | ServerKind::SmallCluster => "a cluster of three",
    };
    format!(
        "{}, {server}: {} runs, {failed} failed; {} appends acknowledged, {} owners, {} turns, \
         {} conflicts, {} unavailable, {} unknown of which {} stored; {} records lost in {} losses, \
         all with expired cursors, {} of them stale",
        fault.name(),
        figures.runs,
        figures.acknowledged,
        figures.owners,
        figures.turns,
        figures.conflicts,
        figures.failed,
        figures.unknown,
        figures.unknown_stored,
        figures.lost_records,
        figures.losses,
        figures.stale,
    )
}
