//! Checks the wire types of Raddle against the schema of the real Codex.
//!
//! The program reads both schemas into shapes and generates instances from both. Our types read and
//! write the instances, which are validated against the reference. `exceptions.toml` lists the
//! allowed differences. The result is written to `docs/compatibility.md`.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod bundle;
mod check;
mod compare;
mod exceptions;
mod findings;
mod generate;
mod page;
mod parts;
mod served_methods;
mod shape;
mod structure;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use raddle_protocol::{METHODS, NOTIFICATIONS, SERVER_REQUESTS};
use serde_json::Value;

use crate::bundle::{Bundle, Extent};
use crate::check::{Check, InstanceCounts};
use crate::exceptions::Exceptions;
use crate::findings::Findings;
use crate::page::Surface;
use crate::parts::{ContractRow, Sources};
use crate::shape::Graph;
use crate::structure::Structure;

/// Version of Codex whose contract Raddle implements.
const PINNED: &str = "0.166.0";
const PAGE: &str = "docs/compatibility.md";

/// Checks our wire types against the schema of the real Codex.
#[derive(Parser)]
struct ContractArgs {
    /// Path of the real Codex.
    #[arg(long, value_name = "BIN")]
    codex: PathBuf,
    /// Take our schema from this binary instead of from the linked types.
    #[arg(long, value_name = "BIN")]
    raddle: Option<PathBuf>,
    /// Minimum number of times that each option of each choice is taken.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u32,
    /// Fail if docs/compatibility.md is not what this run would write.
    #[arg(long, conflicts_with = "write")]
    check: bool,
    /// Write docs/compatibility.md.
    #[arg(long)]
    write: bool,
}

/// Result of the check of a row.
struct RowOutcome {
    row: ContractRow,
    counts: InstanceCounts,
    /// Exceptions that apply to the row, by index.
    exceptions: BTreeSet<usize>,
}

fn main() -> ExitCode {
    match run(&ContractArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &ContractArgs) -> Result<()> {
    let root = root()?;
    expect_pinned(&arguments.codex)?;
    let exceptions = Exceptions::read(&root.join("tests/contract-check/exceptions.toml"))?;
    let reference = Bundle::generate(&arguments.codex, Extent::Everything)?;
    let stable_reference = Bundle::generate(&arguments.codex, Extent::Stable)?;
    let our_bundle = match &arguments.raddle {
        Some(raddle) => {
            let mut bundle = Bundle::generate(raddle, Extent::Everything)?;
            bundle.mark_experimental(&Bundle::generate(raddle, Extent::Stable)?);
            bundle
        }
        None => linked_bundle(),
    };

    let mut findings = Findings::default();
    let mut theirs = Graph::new(reference.definitions.clone());
    let mut stable = Graph::new(stable_reference.definitions.clone());
    let mut ours = Graph::new(our_bundle.definitions.clone());
    let rows = Sources {
        reference: &reference,
        stable_reference: &stable_reference,
        our_bundle: &our_bundle,
        theirs: &mut theirs,
        stable: &mut stable,
        ours: &mut ours,
        exceptions: &exceptions,
        findings: &mut findings,
    }
    .rows()?;

    let mut structure = Structure::new(&ours, &theirs, &stable, &exceptions, &mut findings);
    for part in rows.iter().flat_map(|row| &row.parts) {
        structure.compare(part.ours, part.theirs);
    }
    let (free, met) = (structure.free, structure.met);
    let free: HashMap<_, _> = free
        .into_iter()
        .map(|(ours, (theirs, _))| (ours, theirs))
        .collect();

    let check = Check::new(&reference, &theirs, &ours, free, arguments.rounds);
    let row_counts = check_all(&check, &rows, &mut findings)?;
    for unused in exceptions.unused() {
        findings.add("unused exception", unused);
    }

    let mut outcomes = Vec::new();
    for (row, counts) in rows.into_iter().zip(row_counts) {
        let mut used = BTreeSet::new();
        for part in &row.parts {
            for node in theirs.reach(part.theirs) {
                used.extend(theirs.nodes[node].exception);
            }
            for node in ours.reach(part.ours) {
                used.extend(met.get(&node).into_iter().flatten());
            }
        }
        outcomes.push(RowOutcome {
            row,
            counts,
            exceptions: used,
        });
    }
    print!("{}", page::coverage(&outcomes));
    let lines = findings.lines();
    for line in &lines {
        println!("{line}");
    }
    ensure!(
        lines.is_empty(),
        "{} findings against Codex {PINNED}",
        lines.len()
    );
    let surface = Surface {
        methods: reference.methods("ClientRequest")?.len(),
        notifications: reference.methods("ServerNotification")?.len(),
        server_requests: reference.methods("ServerRequest")?.len(),
    };
    let text = page::page(
        &outcomes,
        &exceptions,
        &served_methods::served(&root),
        surface,
        arguments.rounds,
    );
    settle_page(arguments, &root, &text)
}

/// Checks every part of every row, on as many threads as there are cores.
fn check_all(
    check: &Check<'_>,
    rows: &[ContractRow],
    findings: &mut Findings,
) -> Result<Vec<InstanceCounts>> {
    let jobs: Vec<(usize, String, &parts::ContractPart)> = rows
        .iter()
        .enumerate()
        .flat_map(|(index, row)| {
            row.parts
                .iter()
                .map(move |part| (index, format!("{} {}", row.name, part.side), part))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, name, part)) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let result = check.part(name, part);
                    results
                        .lock()
                        .unwrap_or_else(|poison| poison.into_inner())
                        .push((*index, result));
                }
            });
        }
    });
    let mut row_counts = vec![InstanceCounts::default(); rows.len()];
    for (index, result) in results
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner())
    {
        let (counts, part_findings) = result?;
        row_counts[index].add(counts);
        findings.merge(part_findings);
    }
    Ok(row_counts)
}

/// Returns our schema as the linked types describe it.
fn linked_bundle() -> Bundle {
    let mut generator = schemars::generate::SchemaSettings::draft07().into_generator();
    for row in METHODS {
        (row.shapes.describe)(&mut generator);
    }
    for row in NOTIFICATIONS {
        (row.shapes.describe)(&mut generator);
    }
    for row in SERVER_REQUESTS {
        (row.shapes.describe)(&mut generator);
    }
    Bundle {
        definitions: Value::Object(generator.take_definitions(true)),
    }
}

fn expect_pinned(codex: &Path) -> Result<()> {
    let output = Command::new(codex)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot start {}", codex.display()))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(
        version.split(' ').next_back() == Some(PINNED),
        "the contract is that of Codex {PINNED}, and this is {version}"
    );
    Ok(())
}

fn settle_page(arguments: &ContractArgs, root: &Path, text: &str) -> Result<()> {
    let path = root.join(PAGE);
    if arguments.write {
        std::fs::write(&path, text).with_context(|| format!("cannot write {PAGE}"))?;
    }
    if arguments.check {
        let committed =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
        ensure!(
            committed == text,
            "{PAGE} is stale; run contract-check with --write"
        );
    }
    Ok(())
}

/// Returns the root of the repository, in which the program must be started.
fn root() -> Result<PathBuf> {
    let root = std::env::current_dir()?;
    ensure!(
        root.join(PAGE).is_file(),
        "{} has no {PAGE}; start contract-check at the top of the repository",
        root.display()
    );
    Ok(root)
}
