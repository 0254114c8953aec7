//! Full-size proofs: the checks that CI samples, run at length, for minutes or up to two hours.
//! Results are recorded in `docs/proofs.json`, including failures with their reason. The next run of
//! any proof records one that was interrupted.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::promises::{self, ProofOutcome, Record};
use crate::repository::{self, cargo};
use crate::run::{self, Run};
use crate::{
    checkpoints, ci, fuzz, mirror, parts, postgres, reproducible, tools, trials, workspace,
};

/// A full-size proof.
pub struct Proof {
    pub name: &'static str,
    /// Claim of the proof and the size at which it is checked.
    pub about: &'static str,
    run: fn(&Context) -> Result<()>,
    /// Whether the user can select a binary other than the release build.
    takes_raddle: bool,
}

/// Context of every proof.
struct Context {
    /// The copy of the checkout that is built.
    root: PathBuf,
    checkout: PathBuf,
    cache: Cache,
    raddle: Option<PathBuf>,
    minutes: u64,
}

impl Context {
    /// Returns the path of the selected binary, or of the release build.
    fn binary(&self) -> Result<PathBuf> {
        if let Some(path) = &self.raddle {
            // Cargo may run this program from any directory below the repository.
            return Ok(std::path::absolute(path)?);
        }
        parts::install(&self.cache, &[parts::DEBIAN.to_owned()])?;
        ci::release(&self.cache)
    }
}

const fn proof(name: &'static str, about: &'static str, run: fn(&Context) -> Result<()>) -> Proof {
    Proof {
        name,
        about,
        run,
        takes_raddle: false,
    }
}

impl Proof {
    const fn of_binary(mut self) -> Self {
        self.takes_raddle = true;
        self
    }
}

/// All proofs, in the order of the list.
pub const PROOFS: &[Proof] = &[
    proof("fuzz", "every fuzz target for 10 minutes, or `--minutes N`", |it| {
        let each = Duration::from_secs(it.minutes * 60);
        fuzz::run(&it.root, &it.cache, each)
    }),
    proof(
        "shell",
        "a hundred million random command lines, none judged more loosely for what follows it",
        |it| shell(&it.root, &it.cache),
    ),
    proof("hostile", "50,000 hostile frames on each transport", |it| {
        hostile(&it.root, &it.cache)
    }),
    proof(
        "contract",
        "200 rounds of generated instances against the schema of the real Codex",
        |it| contract(&it.root, &it.cache),
    ),
    proof(
        "slow-sockets",
        "1,000 dripping sockets and a client that never reads, beside ordinary clients",
        |it| slow_sockets(&it.root, &it.cache),
    ),
    proof(
        "left-behind",
        "1,000 unruly commands ended, left by their client, or orphaned by a killed server",
        |it| leftover_processes(&it.root, &it.cache),
    ),
    proof(
        "approved",
        "1,000 approvals while sandboxed commands of other threads and processes exchange the approved file",
        |it| approved(&it.root, &it.cache),
    ),
    proof(
        "quiet",
        "a turn of a million deltas, of which the log holds next to nothing",
        |it| quiet(&it.root, &it.cache),
    ),
    proof("flood", "a command that writes for 60 s as fast as it can", |it| {
        flood(&it.root, &it.cache)
    }),
    proof(
        "always-ends",
        "100 turns for each way of a model to fail, and for one that is slow",
        |it| {
            let raddle = it.binary()?;
            trials::in_time(trials::always_ends(&it.root, &it.cache, &raddle, "100")?)
        },
    )
    .of_binary(),
    proof(
        "rejoin",
        "clients cut off at each of 10,000 records of a message, servers killed 500 times, 1,000 races to answer",
        |it| {
            // Number of deltas; on a busy machine some of them share a record.
            let size = ["11500", "500", "1000", "20"];
            trials::rejoin(&it.root, &it.cache, &it.binary()?, size, trials::FULL_SIZE)
        },
    )
    .of_binary(),
    proof(
        "fleet-suite",
        "the suite of every store and 2,000 cases of the model, on a PostgreSQL cluster with a synchronous standby",
        |it| postgres::suite(&it.root, &it.cache, "2000"),
    ),
    proof(
        "fleet-faults",
        "nodes on PostgreSQL under each fault, with a checker of histories: 200 seeds where nothing fails over, 30 where it does",
        |it| {
            let commit = repository::commit(&it.checkout)?;
            postgres::faults(&it.root, &it.cache, &commit, ["0..200", "0..30"])
        },
    ),
    proof(
        "rejoin-postgres",
        "clients cut off at each of 3,000 records, and servers killed 300 times, with threads in PostgreSQL",
        |it| {
            parts::install(&it.cache, &[parts::DEBIAN.to_owned()])?;
            postgres::rejoin(&it.root, &it.cache, ["3500", "300", "100", "5"])
        },
    ),
    proof(
        "nodes",
        "four processes on one home with 40 threads, 200 kills, and 64 that start at once",
        |it| trials::in_time(trials::nodes(&it.root, &it.cache, &it.binary()?, &[])?),
    )
    .of_binary(),
    proof(
        "crowd",
        "clients that read slowly or never, ask too much, drip, vanish or are many, beside ordinary ones",
        |it| trials::in_time(trials::crowd(&it.root, &it.cache, &it.binary()?, &["crowd"])?),
    )
    .of_binary(),
    proof(
        "soak",
        "20 minutes of mixed load with clients killed at random: memory and descriptors stay the same",
        |it| trials::in_time(trials::crowd(&it.root, &it.cache, &it.binary()?, &["soak"])?),
    )
    .of_binary(),
    proof(
        "adversary",
        "100,000 calls of a hijacked model, hostile workspaces, and no client attached",
        |it| {
            parts::install(&it.cache, &[parts::DEBIAN.to_owned()])?;
            trials::adversary(&it.root, &it.cache, &it.binary()?, "100000")
        },
    )
    .of_binary(),
    proof(
        "escapes",
        "every attempt to break out of the sandbox, in every arm",
        |it| {
            parts::install(&it.cache, &[parts::DEBIAN.to_owned()])?;
            trials::escapes(&it.root, &it.cache)
        },
    ),
    proof(
        "simulator",
        "the next 200,000 simulated lives, then every planted bug within 10,000",
        simulator,
    ),
    proof(
        "crash",
        "the journal's writer killed 2,000 times at random and at every call, its disk failing or full",
        |it| trials::crash(&it.root, &it.cache),
    ),
    proof("damage", "2,000 changed bits of the database and its log", |it| {
        trials::damage(&it.root, &it.cache)
    }),
    proof(
        "big",
        "a thread of 5 GB and 100,000 threads, in about 6 GB of the temporary folder",
        |it| trials::big(&it.root, &it.cache),
    ),
    proof(
        "restore-crash",
        "a restore of files killed at every call that changes the disk, every call failing, the disk full or broken from each on",
        |it| checkpoints::restore_crash(&it.root, &it.cache),
    ),
    proof(
        "truth",
        "500 random sessions of edits: diffs and restores beside plain reading, two with 10,000 files and three with 1 GB",
        |it| checkpoints::truth(&it.root, &it.cache),
    ),
    proof(
        "checkpoint-cost",
        "snapshots of 50,000 files and 1 GB, as ratios to a bare walk and to git",
        |it| checkpoints::cost(&it.root, &it.cache),
    ),
    proof("append", "appends beside bare SQLite, as ratios", |it| {
        trials::append(&it.root, &it.cache)
    }),
    proof(
        "sandbox-cost",
        "a sandboxed command that does nothing, as ratios to bare bubblewrap and to none",
        |it| trials::sandbox_cost(&it.root, &it.cache, &it.binary()?),
    )
    .of_binary(),
    proof(
        "reproducible",
        "two clean release builds of the last commit in two folders, bit for bit the same",
        |it| reproducible::prove(&it.checkout, &it.cache),
    ),
    proof(
        "vscode",
        "VS Code's agent host and its chat page: approvals, patches, cancel, restart, presets",
        vscode,
    )
    .of_binary(),
    proof(
        "mcp",
        "1,000 threads that use MCP servers, hostile servers with a line of 1 GiB, and the delay of others beside them",
        mcp,
    )
    .of_binary(),
    proof(
        "plugins",
        "hostile plugins with a line of 1 GiB and a folder of a million files, the delay of others beside them, 10,000 rounds of calls inside calls, and the template in Go",
        plugins,
    )
    .of_binary(),
    proof(
        "speed",
        "the release binary, or `--raddle BIN`, as ratios to the least possible server",
        |it| speed(it, &[]),
    )
    .of_binary(),
    proof(
        "wires",
        "what the binary adds to a model's answer on each wire, as ratios to a bare reader",
        |it| speed(it, &["wires".as_ref()]),
    )
    .of_binary(),
    proof(
        "spans",
        "processor time of a delta beside a binary without spans, with 300,000 deltas each",
        spans,
    ),
];

pub fn command(mut arguments: Arguments) -> Result<()> {
    let checkout = repository::root()?;
    if arguments.flag("--list") {
        arguments.end()?;
        return list(&checkout);
    }
    let minutes = arguments.number("--minutes")?;
    if minutes == Some(0) {
        bail!("--minutes takes at least 1: to libFuzzer, no time at all means forever");
    }
    let raddle = arguments.value("--raddle")?.map(PathBuf::from);
    let name = arguments.word();
    arguments.end()?;
    let candidate = PROOFS.iter().find(|it| Some(it.name) == name.as_deref());
    let Some(proof) = candidate else {
        bail!("name a proof; `cargo xtask prove --list` lists them");
    };
    if minutes.is_some() && proof.name != "fuzz" {
        bail!("--minutes is for the proof `fuzz`");
    }
    if raddle.is_some() && !proof.takes_raddle {
        let takes = PROOFS.iter().filter(|it| it.takes_raddle);
        let takes: Vec<&str> = takes.map(|it| it.name).collect();
        bail!("--raddle is for the proofs {}", takes.join(", "));
    }

    let cache = Cache::open()?;
    let _lock = cache.lock("ci")?;
    mirror::refresh(&checkout, &cache.source())?;
    // Read before the run: later edits are not part of the proof.
    let commit = repository::commit(&checkout)?;
    let context = Context {
        root: cache.source(),
        checkout,
        cache,
        raddle,
        minutes: minutes.unwrap_or(10),
    };
    let mut record = Record {
        name: proof.name.to_owned(),
        size: match minutes {
            Some(minutes) => format!("every fuzz target for {minutes} minutes"),
            None => proof.about.to_owned(),
        },
        figures: Vec::new(),
        date: ci::today()?,
        commit,
        seconds: 0,
        outcome: ProofOutcome::interrupted(),
    };
    promises::store_interrupted(&context.checkout)?;
    promises::begin(&context.checkout, &record)?;
    run::collect_figures();
    let start = Instant::now();
    let result = (proof.run)(&context);
    record.figures = run::figures();
    record.date = ci::today()?;
    record.seconds = start.elapsed().as_secs();
    record.outcome = ProofOutcome::of(&result);
    promises::store(&context.checkout, record)?;
    promises::end(&context.checkout)?;
    result
}

/// Prints every proof with its last recorded run.
fn list(checkout: &Path) -> Result<()> {
    let records = promises::read(checkout)?;
    for proof in PROOFS {
        println!("{:<14}{}", proof.name, proof.about);
        let last = records.iter().find(|it| it.name == proof.name);
        match last {
            Some(it) => println!(
                "{:<14}last run {} on {}: {}",
                "", it.date, it.commit, it.outcome
            ),
            None => println!("{:<14}no recorded run", ""),
        }
    }
    Ok(())
}

fn shell(root: &Path, cache: &Cache) -> Result<()> {
    Run::new(tools::cargo_nextest(cache)?)
        .directory(root)
        .args(["nextest", "run", "--locked", "--package", "raddle-tools"])
        .args(["--cargo-profile", trials::FULL_SIZE, "--profile", "prove"])
        .args(["--no-tests", "fail", "--no-capture"])
        .arg("more_is_no_looser_in_random_lines")
        .env("CARGO_TARGET_DIR", cache.target())
        .env("RADDLE_SHELL_INPUTS", "100000000")
        .minutes(120)
        .go()
}

fn hostile(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_HOSTILE_FRAMES", "50000")
        .args(["--success-output", "immediate"])
        .go()
}

fn slow_sockets(root: &Path, cache: &Cache) -> Result<()> {
    // The test is ignored in an ordinary run. If it no longer exists, nextest fails because no test
    // matches.
    raddle_tests(root, cache)?
        .args(["--run-ignored", "only", "--no-tests", "fail"])
        .args(["--no-capture", "slow_sockets_full"])
        .go()
}

fn leftover_processes(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_LEFT_BEHIND_ROUNDS", "1000")
        .args(["--no-tests", "fail", "--no-capture"])
        .arg("nothing_is_left_behind")
        .go()
}

fn approved(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_HOLD_ROUNDS", "1000")
        .args(["--no-tests", "fail", "--no-capture"])
        .arg("what_was_approved_is_what_runs")
        .go()
}

fn quiet(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_QUIET_DELTAS", "1000000")
        .args(["--no-tests", "fail", "--no-capture", "a_long_turn_is"])
        .go()
}

fn flood(root: &Path, cache: &Cache) -> Result<()> {
    raddle_tests(root, cache)?
        .env("RADDLE_FLOOD_SECONDS", "60")
        .args(["--no-tests", "fail", "--no-capture", "flood_that_is"])
        .go()
}

/// Prepares the tests of the binary, with a timeout for tests that take many minutes.
fn raddle_tests(root: &Path, cache: &Cache) -> Result<Run> {
    Ok(Run::new(tools::cargo_nextest(cache)?)
        .directory(root)
        .args(["nextest", "run", "--cargo-profile", workspace::PROFILE])
        .args(workspace::SELECTION)
        // The profile is defined in .config/nextest.toml.
        .args(["--profile", "prove", "--filterset", "package(raddle)"])
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(60))
}

/// Runs the simulator. The file of its runs is in the checkout itself: an interrupted run goes on there,
/// and each further one plays other seeds.
fn simulator(context: &Context) -> Result<()> {
    let results = context.checkout.join("tests/simulator/results.txt");
    let version = repository::commit(&context.checkout)?;
    let record = [
        "--seeds".as_ref(),
        "200000".as_ref(),
        "--version".as_ref(),
        version.as_ref(),
        "--results".as_ref(),
        results.as_os_str(),
    ];
    let bugs: [&OsStr; 4] = ["--seeds", "10000", "--bug", "all"].map(AsRef::as_ref);
    for size in [&record[..], &bugs] {
        cargo(&context.root)
            .args([
                "run",
                "--locked",
                "--profile",
                "sim",
                "--package",
                workspace::SIMULATOR,
                "--",
            ])
            .args(size)
            .env("CARGO_TARGET_DIR", context.cache.target())
            .minutes(180)
            .go()?;
    }
    Ok(())
}

/// Runs checks of clients. The screenshot and the rows of the clients are in the checkout itself.
fn vscode(context: &Context) -> Result<()> {
    // The checks need the parts of CI, and VS Code.
    parts::install(&context.cache, &[])?;
    parts::install(&context.cache, &[parts::CODE_SERVER.to_owned()])?;
    let checks = ["vscode-agent-host", "vscode-chat-page"];
    client_checks(context, &checks, &["--write-results"])
}

fn mcp(context: &Context) -> Result<()> {
    parts::install(&context.cache, &[])?;
    let checks = ["mcp-rounds-full", "mcp-hostile-full", "mcp-hostile-load"];
    client_checks(context, &checks, &[])
}

fn plugins(context: &Context) -> Result<()> {
    parts::install(&context.cache, &[])?;
    parts::install(&context.cache, &[parts::GO.to_owned()])?;
    let checks = [
        "plugin-hostile-full",
        "plugin-hostile-load",
        "plugin-rounds-full",
        "go-plugin",
    ];
    client_checks(context, &checks, &[])
}

fn client_checks(context: &Context, checks: &[&str], options: &[&str]) -> Result<()> {
    let raddle = context.binary()?;
    for check in checks {
        Run::new("python3")
            .directory(&context.checkout)
            .args(["tests/clients/run.py", "--only", check])
            .args(options)
            .arg("--raddle")
            .arg(&raddle)
            .arg("--parts")
            .arg(context.cache.parts())
            .minutes(10)
            .go()?;
    }
    Ok(())
}

fn speed(context: &Context, words: &[&OsStr]) -> Result<()> {
    let raddle = context.binary()?;
    let Context { root, cache, .. } = context;
    cargo(root)
        .args(["build", "--release", "--locked", "--package", "bench"])
        .env("CARGO_TARGET_DIR", cache.target())
        .go()?;
    Run::new(cache.target().join("release/speed"))
        .directory(root)
        .arg(raddle)
        .args(words)
        .minutes(20)
        .go()
}

/// Compares the release binary with one in which `tracing` is compiled out.
fn spans(context: &Context) -> Result<()> {
    let Context { root, cache, .. } = context;
    let release = context.binary()?;
    let without = cache.target().join("raddle-without-spans");
    // In the same target folder, so that it shares what does not depend on `tracing`. `speed` then
    // puts the ordinary binary back.
    ci::release_build(cargo(root))
        .args(["--features", "tracing/release_max_level_off"])
        .env("CARGO_TARGET_DIR", cache.target())
        .go()?;
    fs::copy(&release, &without)?;
    speed(context, &["spans".as_ref(), without.as_os_str()])?;
    fs::remove_file(without).map_err(Into::into)
}

fn contract(root: &Path, cache: &Cache) -> Result<()> {
    parts::install(cache, &["codex".to_owned()])?;
    cargo(root)
        .args([
            "run",
            "--profile",
            "ci",
            "--package",
            "contract-check",
            "--locked",
            "--",
        ])
        .args(["--rounds", "200", "--codex"])
        .arg(parts::codex_program(cache)?)
        .env("CARGO_TARGET_DIR", cache.target())
        .minutes(60)
        .go()
}
