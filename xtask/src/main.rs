//! Developer commands of this repository.
//!
//! `cargo xtask ci` is the complete CI, locally as in the cloud. The other commands are its parts,
//! plus the proofs that take too long to run on every change.
//!
//! This crate is not part of the product and links no Raddle crate: a broken crate must not keep
//! the checks from running.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod arguments;
mod cache;
mod changelog;
mod checkpoints;
mod ci;
mod clients;
mod cross;
mod docs;
mod failure_text;
mod fuzz;
mod r#gen;
mod generated;
mod home_fixture;
mod install;
mod limits;
mod mirror;
mod packages;
mod parts;
mod postgres;
mod processes;
mod promises;
mod prove;
mod recording;
mod release;
mod repository;
mod reproducible;
mod run;
mod tidy;
mod tools;
mod trials;
mod typescript;
mod versions;
mod vocabulary;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::arguments::Arguments;

const HELP: &str = "\
The developer's commands of this repository.

Usage: cargo xtask COMMAND

Commands
  ci                      run all of CI, in order, and stop at the first failure
     --list               print the steps
     --only STEP[,STEP]   run these steps and what they need
     --from STEP          run this step, what it needs, and all that follow
     --every-slice        run the slices of every day, not only of today
     --day N              take this day for today, counted from 1970-01-01
  tidy                    our own checks: layers, cycles, files per method, stdout, error pages, limits,
                          links, machine paths, pinned actions, names, words, file sizes,
                          changelog
  words [--counts]        print identifiers with a word of xtask/rename-list.toml, or count comments
  gen [--check]           write docs/reference from the method table, or say what is stale
     --raddle BIN         use this binary instead of building one
  docs                    build the book of README.md and docs/, with search, and print where it is
  recording [--check]     record `raddle exec` and `raddle demo` as docs/images/exec.svg and
                          demo.svg, or say that they are stale
     --raddle BIN         use this binary instead of building one
  limits [--check]        write docs/limits.md from the constants that describe themselves as limits
  changelog [--check]     write the Unreleased section of CHANGELOG.md from changes/
  clients [--check]       write docs/clients.md from tests/clients/results.json
  parts [NAME...]         install the real parts that CI needs, and print where they are
  package --out FOLDER    write the packages that carry the binary, and their checksums
     --raddle BIN         use this binary instead of building one
     --sign KEY           sign the checksums with this key of OpenSSH
     --minisign KEY       sign the checksums with this key of minisign, KEY.pub beside it
     --url URL            address of the releases, for files that download one; --minisign needs it
  cross                   build the binary for Linux on aarch64, and try it in an emulator
  home-fixture            write a home with an old binary, as a fixture of the binary's tests
     --raddle BIN         the old binary
     --out FOLDER         the folder of the fixture
  release --dry-run       build, check and list everything that a release would publish
     --tag TAG            fail unless the tag is that of the version
     --out FOLDER         write the packages here (default target/release-dry-run)
  prove NAME              run a full-size proof and record what it found; `prove --list` names them
                          and says when each last ran
  promises [--check]      write docs/promises.md from docs/proofs.json

Environment
  RADDLE_CI_CACHE         where builds, tools and parts are kept (default ~/.cache/raddle-ci)
  RADDLE_ADVISORY_DB      a folder of advisory databases, as cargo-deny keeps them; with it the
                          deny step checks advisories too
";

fn main() -> ExitCode {
    match dispatch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch() -> Result<()> {
    let mut arguments = Arguments::new(std::env::args().skip(1));
    if arguments.flag("--help") || arguments.flag("-h") {
        print!("{HELP}");
        return Ok(());
    }
    match arguments.word().as_deref() {
        Some("ci") => ci::command(arguments),
        Some("tidy") => tidy::command(arguments),
        Some("gen") => r#gen::command(arguments),
        Some("changelog") => changelog::command(arguments),
        Some("clients") => clients::command(arguments),
        Some("docs") => docs::command(arguments),
        Some("limits") => limits::command(arguments),
        Some("parts") => parts::command(arguments),
        Some("package") => packages::command(arguments),
        Some("cross") => cross::command(arguments),
        Some("home-fixture") => home_fixture::command(arguments),
        Some("prove") => prove::command(arguments),
        Some("recording") => recording::command(arguments),
        Some("release") => release::command(arguments),
        Some("promises") => promises::command(arguments),
        Some("words") => vocabulary::command(arguments),
        None | Some("help") => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("no command `{other}`; `cargo xtask --help` lists them"),
    }
}
