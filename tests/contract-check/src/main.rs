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
mod comparison;
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
mod undeclared;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::bundle::{Bundle, Extent};
use crate::comparison::Comparison;
use crate::exceptions::Exceptions;
use crate::findings::Findings;
use crate::page::Surface;
use crate::undeclared::Undeclared;

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
    /// Compare with another version of Codex than the pinned one, to list what it changes.
    #[arg(long, conflicts_with_all = ["check", "write"])]
    unpinned: bool,
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
    let version = version_of(&arguments.codex)?;
    ensure!(
        arguments.unpinned || version == PINNED,
        "the contract is that of Codex {PINNED}, and this is {version}; \
         pass --unpinned to list the differences"
    );
    let exceptions = Exceptions::read(&root.join("tests/contract-check/exceptions.toml"))?;
    let reference = Bundle::generate(&arguments.codex, Extent::Everything)?;
    let stable_reference = Bundle::generate(&arguments.codex, Extent::Stable)?;
    let our_bundle = match &arguments.raddle {
        Some(raddle) => {
            let mut bundle = Bundle::generate(raddle, Extent::Everything)?;
            bundle.mark_experimental(&Bundle::generate(raddle, Extent::Stable)?);
            bundle
        }
        None => Bundle::linked(),
    };

    let mut findings = Findings::default();
    let outcomes = Comparison {
        reference: &reference,
        stable_reference: &stable_reference,
        our_bundle: &our_bundle,
        exceptions: &exceptions,
        rounds: arguments.rounds,
    }
    .run(|_| true, &mut findings)?;
    for unused in exceptions.unused() {
        findings.add("unused exception", unused);
    }
    let undeclared = Undeclared::of(&reference)?;
    if !arguments.write {
        undeclared.compare(&committed_page(&root)?, &mut findings);
    }
    print!("{}", page::coverage(&outcomes));
    let lines = findings.lines();
    for line in &lines {
        println!("{line}");
    }
    ensure!(
        lines.is_empty(),
        "{} findings against Codex {version}",
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
        &undeclared,
        arguments.rounds,
    );
    settle_page(arguments, &root, &text)
}

/// Returns the version that a Codex prints.
fn version_of(codex: &Path) -> Result<String> {
    let output = Command::new(codex)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot start {}", codex.display()))?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(line.split(' ').next_back().unwrap_or(&line).to_owned())
}

fn committed_page(root: &Path) -> Result<String> {
    std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))
}

fn settle_page(arguments: &ContractArgs, root: &Path, text: &str) -> Result<()> {
    if arguments.write {
        std::fs::write(root.join(PAGE), text).with_context(|| format!("cannot write {PAGE}"))?;
    }
    if arguments.check {
        ensure!(
            committed_page(root)? == text,
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
