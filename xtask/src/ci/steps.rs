//! The steps of CI.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};

use super::Ci;
use super::plan::CiStep;
use crate::run::Run;
use crate::workspace::{self, SIMULATOR};
use crate::{
    docs, fuzz, r#gen, packages, parts, postgres, recording, tidy, tools, trials, typescript,
};

pub const PARTS: &str = "parts";
const RELEASE: &str = "release";
pub const MUSL: &str = "x86_64-unknown-linux-musl";

const BINARY_BYTES_MAX: u64 = 32_600_000;
const CRATES_MAX: usize = 320;
const SIMULATED_SEEDS: &str = "10000";
/// Failed turns of each kind; five cover every path through a kind.
const FAILED_TURNS: &str = "16";
/// Records of a message at which clients are disconnected, servers killed on each transport,
/// requests that two clients answer at once, and repetitions of every request.
const REJOINED: [&str; 4] = ["300", "12", "60", "1"];
/// The same on PostgreSQL, smaller, and stock clients.
const FLEET_TURNS: &str = "3";
const FLEET_REJOINED: [&str; 4] = ["100", "4", "10", "1"];
const FLEET_FAULTS: &str = "0..2";
const FLEET_CLIENTS: &[&str] = &[
    "tui-interrupt",
    "tui-resume",
    "tui-asks-again",
    "python-sdk-threads",
    "acp-session",
];
const NODES: &[&str] = &["--threads", "20", "--kills", "10", "--starts", "16"];
/// On a machine that may be busy, a ratio is only a rough measure.
const CROWD: &[&str] = &[
    "crowd",
    "--pieces",
    "20000",
    "--pairs",
    "3",
    "--ratio",
    "8",
    "--stay",
    "0",
    "--sockets",
    "200",
    "--threads",
    "200",
];
const SOAK: &[&str] = &["soak", "--seconds", "60", "--warm", "30", "--percent", "30"];
const HIJACKED_CALLS: &str = "2000";

/// All steps in the order they are run: steps that fail often and fast come first. The release
/// build and the build of a tool run beside the tests, which wait more than they compute.
pub const STEPS: &[CiStep] = &[
    CiStep::new(PARTS, "install the real parts", |ci| {
        parts::install(&ci.cache, &[]).map(|_| ())
    })
    .in_background(),
    CiStep::new("format", "rustfmt has nothing to change", format),
    CiStep::new("spelling", "no known misspelling", spelling),
    CiStep::new(
        "tidy",
        "our own checks of layers, files, stdout, pages, links",
        |ci| tidy::run(&ci.checkout),
    ),
    CiStep::new("crates", "the binary is made of few crates", crates),
    CiStep::new("clippy", "no warning, in tests neither", clippy),
    CiStep::new(
        RELEASE,
        "build the static binary that users get, and that later steps test",
        release,
    )
    .needs(&[PARTS])
    .in_background(),
    // Some tests run commands in the sandbox, and bubblewrap is one of the packages.
    CiStep::new("tests", "all tests, then the examples in docs", tests).needs(&[PARTS]),
    CiStep::new("deny", "licences, bans and sources of crates", deny).in_background(),
    CiStep::new(
        "simulator",
        "fixed seeds of simulated threads, and planted bugs that must be caught",
        simulator,
    ),
    CiStep::new(
        "fuzz",
        "every seed and every earlier finding of each fuzz target, replayed",
        |ci| fuzz::replay(&ci.root, &ci.cache),
    ),
    CiStep::new(
        "docs",
        "rustdoc without a warning, and the book with its links and search",
        docs,
    ),
    CiStep::new(
        "escapes",
        "attempts to break out of the sandbox, in both tiers and without it",
        |ci| trials::escapes(&ci.root, &ci.cache),
    )
    .needs(&[PARTS]),
    CiStep::new(
        "contract",
        "our types against the schema of the real Codex",
        contract,
    )
    .needs(&[PARTS]),
    CiStep::new(
        "generated",
        "docs/reference and the schema of the configuration are what the binary writes",
        |ci| r#gen::run(&ci.root, &ci.raddle(), r#gen::Mode::Check),
    )
    .needs(&[RELEASE]),
    CiStep::new(
        "recording",
        "the recordings in README are what the binary shows",
        |ci| recording::run(&ci.root, &ci.cache, &ci.raddle(), r#gen::Mode::Check),
    )
    .needs(&[PARTS, RELEASE]),
    CiStep::new(
        "packages",
        "the packages of the binary: small, the same each time, installed by an unknown user",
        |ci| packages::check(&ci.root, &ci.cache, &ci.raddle()),
    )
    .needs(&[PARTS, RELEASE]),
    CiStep::new(
        "typescript",
        "the generated types under the strict compiler",
        |ci| typescript::run(&ci.root, &ci.cache, &ci.raddle()),
    )
    .needs(&[PARTS, RELEASE]),
    CiStep::new("clients", "stock clients drive the release binary", clients)
        .needs(&[PARTS, RELEASE]),
    CiStep::new(
        "ends",
        "a slice of the turns whose model fails: each ends once, in time, and typed",
        |ci| {
            ci.steadily("ends", || {
                trials::always_ends(&ci.root, &ci.cache, &ci.raddle(), FAILED_TURNS)
            })
        },
    )
    .needs(&[RELEASE]),
    CiStep::new(
        "fleet",
        "slices of the trials and stock clients, on a server whose threads are in PostgreSQL",
        |ci| {
            postgres::fault_slice(&ci.root, &ci.cache, FLEET_FAULTS)?;
            postgres::clients(&ci.root, &ci.cache, FLEET_CLIENTS)?;
            ci.steadily("fleet", || {
                postgres::slices(&ci.root, &ci.cache, FLEET_TURNS, FLEET_REJOINED)
            })
        },
    )
    .needs(&[PARTS]),
    CiStep::new(
        "adversary",
        "a slice of the calls of a hijacked model; hostile workspaces; no client attached",
        |ci| {
            let (raddle, calls) = (ci.raddle(), HIJACKED_CALLS);
            trials::hostile_workspaces(&ci.root, &ci.cache, &raddle)?;
            ci.steadily("adversary", || {
                trials::unattended(&ci.root, &ci.cache, &raddle)
            })?;
            trials::hijacked_model(&ci.root, &ci.cache, &raddle, calls)
        },
    )
    .needs(&[PARTS, RELEASE]),
    CiStep::new(
        "rejoin",
        "a slice of the clients cut off, servers killed, and requests answered twice or sent again",
        |ci| trials::rejoin(&ci.root, &ci.cache, &ci.raddle(), REJOINED, trials::SLICE),
    )
    .needs(&[RELEASE])
    .on_day(0),
    CiStep::new(
        "nodes",
        "a slice of several processes on one home: relayed, handed over, stopped, killed",
        |ci| {
            ci.steadily("nodes", || {
                trials::nodes(&ci.root, &ci.cache, &ci.raddle(), NODES)
            })
        },
    )
    .needs(&[RELEASE])
    .on_day(0),
    CiStep::new(
        "crowd",
        "a slice of the clients that are slow, hostile or many beside ordinary ones",
        |ci| {
            ci.steadily("crowd", || {
                trials::crowd(&ci.root, &ci.cache, &ci.raddle(), CROWD)
            })
        },
    )
    .needs(&[RELEASE])
    .on_day(1),
    CiStep::new(
        "soak",
        "a minute of mixed load with clients killed at random",
        |ci| {
            ci.steadily("soak", || {
                trials::crowd(&ci.root, &ci.cache, &ci.raddle(), SOAK)
            })
        },
    )
    .needs(&[RELEASE])
    .on_day(1),
    CiStep::new(
        "journal",
        "slices of the trials of the local journal: killed, damaged and large",
        |ci| trials::slices(&ci.root, &ci.cache),
    )
    .on_day(2),
];

fn format(ci: &Ci) -> Result<()> {
    ci.cargo(&["fmt", "--all", "--check"])
        .go()
        .context("run `cargo fmt --all`")
}

fn spelling(ci: &Ci) -> Result<()> {
    ci.run(tools::typos(&ci.cache)?)
        .minutes(5)
        .go()
        .context("mend the words, or list them with a reason in typos.toml")
}

fn clippy(ci: &Ci) -> Result<()> {
    ci.cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--locked",
    ])
    .args(["--profile", "ci", "--", "-D", "warnings"])
    .go()
}

/// Runs the tests without all features and without the simulator: one of its features plants bugs,
/// and crates that are built together with it contain them too.
fn tests(ci: &Ci) -> Result<()> {
    // Nextest writes it below the source directory, wherever cargo builds.
    let report = ci.root.join("target/nextest/default/junit.xml");
    ci.run(tools::cargo_nextest(&ci.cache)?)
        .args(["nextest", "run", "--cargo-profile", workspace::PROFILE])
        .args(workspace::SELECTION)
        // The same cases each time; new seeds are a search, and searches belong to the proofs.
        .env("PROPTEST_RNG_SEED", "1")
        .go()?;
    let text = fs::read_to_string(&report)
        .with_context(|| format!("nextest wrote no {}", report.display()))?;
    fs::remove_file(&report)?;
    for test in unsteady_tests(&text) {
        println!("unsteady: {test} passed only when it was run again");
        ci.mark_unsteady("tests");
    }
    // Nextest does not run the examples in doc comments.
    ci.cargo(&["test", "--doc", "--profile", workspace::PROFILE])
        .args(workspace::SELECTION)
        .go()
}

/// Returns the names of the tests in a JUnit report of nextest that failed first and passed later.
/// Only tests with a time limit are retried; `.config/nextest.toml` lists them.
fn unsteady_tests(report: &str) -> Vec<&str> {
    let cases = report.split("<testcase ").skip(1);
    cases
        .filter(|case| case.contains("<flakyFailure"))
        .filter_map(|case| case.split_once("name=\"")?.1.split('"').next())
        .collect()
}

/// Runs the seeds of the regression file, and the first thousands.
fn simulator(ci: &Ci) -> Result<()> {
    ci.run(tools::cargo_nextest(&ci.cache)?)
        .args(["nextest", "run", "--locked", "--cargo-profile", "ci"])
        .args(["--package", SIMULATOR])
        .go()?;
    ci.cargo(&["run", "--locked", "--profile", "ci"])
        .args(["--package", SIMULATOR, "--", "--seeds", SIMULATED_SEEDS])
        .go()
}

pub fn release(ci: &Ci) -> Result<()> {
    ensure_musl(ci)?;
    release_build(ci.cargo(&[])).go()?;
    let binary = ci.raddle();
    let bytes = fs::metadata(&binary)?.len();
    println!("{}: {:.1} MB", binary.display(), bytes as f64 / 1e6);
    if bytes >= BINARY_BYTES_MAX {
        bail!("the binary has {bytes} bytes, the limit is {BINARY_BYTES_MAX}; see what has grown");
    }
    Ok(())
}

/// Builds the binary that users get, in the directory of this cargo command.
pub fn release_build(cargo: Run) -> Run {
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--target",
        MUSL,
        "--package",
        "raddle",
    ])
}

/// Ensures that the musl target is installed. The toolchain file names it, but a toolchain that was
/// installed otherwise may lack it.
fn ensure_musl(ci: &Ci) -> Result<()> {
    let libraries = ci
        .run("rustc")
        .args(["--print", "target-libdir", "--target", MUSL])
        .output()?;
    if fs::exists(libraries.trim())? {
        return Ok(());
    }
    ci.run("rustup")
        .args(["target", "add", MUSL])
        .minutes(10)
        .go()
}

fn contract(ci: &Ci) -> Result<()> {
    workspace::program(&ci.root, &ci.cache, "contract-check")?
        .arg("--codex")
        .arg(parts::codex_program(&ci.cache)?)
        .arg("--check")
        .go()
}

fn clients(ci: &Ci) -> Result<()> {
    ci.run("python3")
        .args(["tests/clients/run.py", "--raddle"])
        .arg(ci.raddle())
        .arg("--parts")
        .arg(ci.cache.parts())
        .minutes(20)
        .go()
}

fn deny(ci: &Ci) -> Result<()> {
    let program = tools::cargo_deny(&ci.cache)?;
    let deny = |words: &[&str]| ci.run(&program).args(words).minutes(10).go();
    deny(&["--locked", "check", "bans", "licenses", "sources"])?;
    // deny.toml reads the variable. Offline, because the given database must be used.
    if std::env::var_os("RADDLE_ADVISORY_DB").is_some_and(|it| !it.is_empty()) {
        deny(&["--locked", "--offline", "check", "advisories"])
    } else {
        println!("advisories were not checked: RADDLE_ADVISORY_DB names no database");
        Ok(())
    }
}

fn docs(ci: &Ci) -> Result<()> {
    ci.cargo(&[
        "doc",
        "--workspace",
        "--no-deps",
        "--all-features",
        "--locked",
    ])
    .args(["--profile", "ci"])
    .env("RUSTDOCFLAGS", "-D warnings")
    .go()?;
    docs::build(&ci.checkout, &ci.cache).map(|_| ())
}

fn crates(ci: &Ci) -> Result<()> {
    let tree = ci
        .cargo(&[
            "tree",
            "--package",
            "raddle",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .args(["--target", "x86_64-unknown-linux-gnu", "--locked"])
        .output()?;
    let count = count_crates(&tree);
    println!("the binary is made of {count} crates, the limit is {CRATES_MAX}");
    if count > CRATES_MAX {
        bail!("too many crates: find out with `cargo tree` which dependency brought them");
    }
    Ok(())
}

/// Counts crates by name and version, the first two words; the rest differs between mentions of one
/// crate.
fn count_crates(tree: &str) -> usize {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect::<BTreeSet<_>>()
        .len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_passed_on_a_later_try_is_named() {
        let report = "<testsuite name=\"a\"><testcase name=\"steady\" time=\"1\"></testcase>\
            <testcase name=\"late\" time=\"1\"><flakyFailure type=\"x\"/></testcase></testsuite>";
        assert_eq!(unsteady_tests(report), ["late"]);
    }

    #[test]
    fn a_crate_is_counted_once_per_version() {
        let tree =
            "raddle v0.1.0 (/somewhere)\nsyn v2.0.1 (proc-macro)\nsyn v2.0.1 (*)\n\nsyn v1.0.9\n";
        assert_eq!(count_crates(tree), 3);
    }
}
