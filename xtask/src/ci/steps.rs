//! The steps themselves.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Ci;
use super::plan::Step;
use crate::run::Run;
use crate::{fuzz, r#gen, packages, parts, tidy, tools, trials, typescript};

pub const PARTS: &str = "parts";
const RELEASE: &str = "release";
pub const MUSL: &str = "x86_64-unknown-linux-musl";

const BINARY_BYTES_MAX: u64 = 27_000_000;
const CRATES_MAX: usize = 320;
const SIMULATOR: &str = "raddle-sim";
const SIMULATED_SEEDS: &str = "10000";
/// Of each kind; five take every way through a kind.
const FAILED_TURNS: &str = "16";
/// Records of a message at each of which clients are cut off, servers killed on each transport, requests that two
/// clients answer at once, and how often every request is sent again.
const REJOINED: [&str; 4] = ["300", "12", "60", "1"];
const NODES: &[&str] = &["--threads", "20", "--kills", "10", "--starts", "16"];
/// On a machine that may be busy, a ratio can be no more than rough.
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
const FUZZ_EACH: Duration = Duration::from_secs(30);

/// In the order they are run: what fails often and fast comes early.
pub const STEPS: &[Step] = &[
    Step {
        name: PARTS,
        about: "install the real parts, in the background until a step needs them",
        needs: &[],
        run: |ci| parts::install(&ci.cache, &[]).map(|_| ()),
    },
    Step {
        name: "format",
        about: "rustfmt has nothing to change",
        needs: &[],
        run: format,
    },
    Step {
        name: "spelling",
        about: "no known misspelling",
        needs: &[],
        run: spelling,
    },
    Step {
        name: "clippy",
        about: "no warning, in tests neither",
        needs: &[],
        run: clippy,
    },
    Step {
        name: "tests",
        about: "all tests, then the examples in docs",
        // Some run commands inside the fence, and bubblewrap is one of the packages.
        needs: &[PARTS],
        run: tests,
    },
    Step {
        name: "simulator",
        about: "10,000 simulated lives of threads, and planted bugs that must be caught",
        needs: &[],
        run: simulator,
    },
    Step {
        name: "journal",
        about: "slices of the trials: the local journal killed and large",
        needs: &[],
        run: |ci| trials::slices(&ci.root, &ci.cache),
    },
    Step {
        name: "tidy",
        about: "our own checks of layers, files, stdout, pages, links",
        needs: &[],
        run: |ci| tidy::run(&ci.root),
    },
    Step {
        name: RELEASE,
        about: "build the static binary that the next steps test",
        needs: &[PARTS],
        run: release,
    },
    Step {
        name: "packages",
        about: "the packages of that binary: small, the same each time, installed by a stranger",
        needs: &[PARTS, RELEASE],
        run: |ci| packages::check(&ci.root, &ci.cache, &ci.raddle()),
    },
    Step {
        name: "fence",
        about: "a hundred attempts to break out of the fence, in both tiers and without it",
        needs: &[PARTS],
        run: |ci| trials::escapes(&ci.root, &ci.cache),
    },
    Step {
        name: "generated",
        about: "docs/reference and the schema of the configuration are what the binary writes",
        needs: &[RELEASE],
        run: |ci| r#gen::run(&ci.root, &ci.raddle(), r#gen::Mode::Check),
    },
    Step {
        name: "typescript",
        about: "the generated types under the strict compiler",
        needs: &[PARTS, RELEASE],
        run: |ci| typescript::run(&ci.root, &ci.cache, &ci.raddle()),
    },
    Step {
        name: "contract",
        about: "our types against the schema of the real Codex",
        needs: &[PARTS],
        run: contract,
    },
    Step {
        name: "clients",
        about: "stock clients drive the release binary",
        needs: &[PARTS, RELEASE],
        run: clients,
    },
    Step {
        name: "ends",
        about: "a slice of the turns whose model fails: each ends once, in time, and typed",
        needs: &[RELEASE],
        run: |ci| trials::always_ends(&ci.root, &ci.cache, &ci.raddle(), FAILED_TURNS),
    },
    Step {
        name: "rejoin",
        about: "a slice of the clients cut off, the servers killed, and the requests that two answer at once or one sends again",
        needs: &[RELEASE],
        run: |ci| trials::rejoin(&ci.root, &ci.cache, &ci.raddle(), REJOINED),
    },
    Step {
        name: "nodes",
        about: "a slice of several processes on one home: used from afar, handed over, stopped, killed",
        needs: &[RELEASE],
        run: |ci| trials::nodes(&ci.root, &ci.cache, &ci.raddle(), NODES),
    },
    Step {
        name: "crowd",
        about: "a slice of the clients that are slow, hostile or many beside ordinary ones",
        needs: &[RELEASE],
        run: |ci| trials::crowd(&ci.root, &ci.cache, &ci.raddle(), CROWD),
    },
    Step {
        name: "soak",
        about: "a minute of mixed load with clients killed at random",
        needs: &[RELEASE],
        run: |ci| trials::crowd(&ci.root, &ci.cache, &ci.raddle(), SOAK),
    },
    Step {
        name: "adversary",
        about: "a slice of the calls of a hijacked model; hostile workspaces; nobody attached",
        needs: &[PARTS, RELEASE],
        run: |ci| trials::adversary(&ci.root, &ci.cache, &ci.raddle(), HIJACKED_CALLS),
    },
    Step {
        name: "fuzz",
        about: "every fuzz target, 30 s each",
        // libFuzzer is C++, and the compiler for it is one of the packages.
        needs: &[PARTS],
        run: |ci| fuzz::run(&ci.root, &ci.cache, FUZZ_EACH),
    },
    Step {
        name: "deny",
        about: "licences, bans and sources of crates",
        needs: &[],
        run: deny,
    },
    Step {
        name: "docs",
        about: "rustdoc without a warning",
        needs: &[],
        run: docs,
    },
    Step {
        name: "crates",
        about: "the binary is made of few crates",
        needs: &[],
        run: crates,
    },
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

/// Not all features, and without the simulator: one of them plants bugs, and what is built together
/// with it has them too.
fn tests(ci: &Ci) -> Result<()> {
    ci.run(tools::cargo_nextest(&ci.cache)?)
        .args(["nextest", "run", "--locked", "--cargo-profile", "ci"])
        .args(["--workspace", "--exclude", SIMULATOR])
        .go()?;
    // nextest does not run the examples in doc comments.
    ci.cargo(&["test", "--doc", "--locked", "--profile", "ci"])
        .args(["--workspace", "--exclude", SIMULATOR])
        .go()
}

/// Thousands of seeds, and those of the regression file.
fn simulator(ci: &Ci) -> Result<()> {
    ci.run(tools::cargo_nextest(&ci.cache)?)
        .args(["nextest", "run", "--locked", "--cargo-profile", "sim"])
        .args(["--package", SIMULATOR])
        .go()?;
    ci.cargo(&["run", "--locked", "--profile", "sim"])
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

/// What builds the binary that users get, in whatever folder this cargo runs.
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

/// The toolchain file names this target; a toolchain that was installed otherwise may lack it.
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
    ci.cargo(&[
        "run",
        "--profile",
        "ci",
        "--package",
        "contract-check",
        "--locked",
        "--",
    ])
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
    // deny.toml reads the variable; off-line, because the database is the one that was given.
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
    .go()
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

/// Name and version are the first two words; what follows differs between mentions of one crate.
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
    fn a_crate_is_counted_once_per_version() {
        let tree =
            "raddle v0.1.0 (/somewhere)\nsyn v2.0.1 (proc-macro)\nsyn v2.0.1 (*)\n\nsyn v1.0.9\n";
        assert_eq!(count_crates(tree), 3);
    }
}
