//! Servers whose threads are in PostgreSQL, for the trials and the checks of clients.
//!
//! A program in place of `raddle` adds the address of the database to its arguments, and a schema for
//! each home. So every trial and every check runs on PostgreSQL as it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cache::{Cache, remove_folder};
use crate::run::{Punctuality, Run};
use crate::{parts, repository, tools, trials, workspace};

/// Name of the program that stores threads in the home, for its own build.
const RADDLE: &str = "raddle";

/// Whether PostgreSQL waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// It waits, as in production.
    Waits,
    /// It does not, so that a slice is fast.
    Skipped,
}

/// A PostgreSQL server, and a program that stores threads in it. Both end with this value.
pub struct Database {
    script: PathBuf,
    folder: PathBuf,
}

impl Database {
    /// Starts a server.
    pub fn start(root: &Path, disk: Disk) -> Result<Self> {
        let is_fsync = match disk {
            Disk::Waits => "fsync=on",
            Disk::Skipped => "fsync=off",
        };
        let database = Self::prepare(root)?;
        let settings = ["max_connections=600", is_fsync];
        database.script("single").args(settings).minutes(2).go()?;
        Ok(database)
    }

    /// Starts a cluster: three members with Patroni, one of them a synchronous standby.
    fn start_cluster(root: &Path) -> Result<Self> {
        parts::install_cluster()?;
        let database = Self::prepare(root)?;
        database.script("up").minutes(4).go()?;
        Ok(database)
    }

    fn prepare(root: &Path) -> Result<Self> {
        // The server runs as another user if we are root, and must be able to enter the folder.
        let folder = std::env::temp_dir().join(format!("raddle-pg-{}", std::process::id()));
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        Ok(Self {
            script: root.join("tests/fleet/pg-cluster.sh"),
            folder,
        })
    }

    /// Returns a program that runs `raddle` with its threads in the database.
    pub fn program(&self, raddle: &Path) -> Result<PathBuf> {
        let address = self.script("dsn").minutes(1).output()?;
        let program = self.folder.join(RADDLE);
        let script = format!(
            "#!/bin/sh\n\
             schema=h$(printf %s \"$RADDLE_HOME$HOME\" | md5sum | cut -c 1-20)\n\
             exec '{}' -c store.address='{}' -c \"store.schema=$schema\" \"$@\"\n",
            raddle.display(),
            address.trim()
        );
        fs::write(&program, script)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(program)
    }

    fn script(&self, verb: &str) -> Run {
        let run = Run::new("bash").arg(&self.script).arg(verb);
        run.arg(self.folder.join("pg"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = self.script("down").minutes(1).go() {
            eprintln!("the database did not end: {error:#}");
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Builds `raddle` with the store on PostgreSQL, as the tests do.
fn raddle(root: &Path, cache: &Cache) -> Result<PathBuf> {
    workspace::build(root, cache)?;
    let program = cache.target().join(workspace::PROFILE).join(RADDLE);
    program.canonicalize().context("the build has no raddle")
}

/// Runs slices of the trials: turns whose model fails, and clients that are cut off.
pub fn slices(root: &Path, cache: &Cache, turns: &str, rejoined: [&str; 4]) -> Result<Punctuality> {
    let database = Database::start(root, Disk::Skipped)?;
    let program = database.program(&raddle(root, cache)?)?;
    trials::rejoin(root, cache, &program, rejoined, trials::SLICE)?;
    trials::always_ends_remotely(root, cache, &program, turns)
}

/// Faults of one server, and of a cluster.
const SERVER_FAULTS: &[&str] = &[
    "none",
    "node-killed",
    "node-paused",
    "connection-cut",
    "answers-delayed",
    "server-killed",
    "clock",
];
const CLUSTER_FAULTS: &[&str] = &[
    "primary-killed",
    "primary-stopped",
    "members-killed",
    "etcd-killed",
    "disk-full",
];

/// Faults of the slice. The others need more time, or more programs.
const SLICE_FAULTS: &[&str] = &["connection-cut", "node-killed", "node-paused"];

/// Runs a slice of the faults of a server, with these seeds each.
pub fn fault_slice(root: &Path, cache: &Cache, seeds: &str) -> Result<()> {
    trials::fleet_faults(root, cache, SLICE_FAULTS, seeds, None)
}

/// Runs every fault of a server and of a cluster, with these seeds each. Seeds that passed with this
/// commit are not run again.
pub fn faults(root: &Path, cache: &Cache, commit: &str, seeds: [&str; 2]) -> Result<()> {
    parts::install(cache, &[parts::DEBIAN.to_owned()])?;
    parts::install_cluster()?;
    let folder = cache.fleet_faults().join(commit);
    if commit.ends_with(repository::DIRTY) {
        // Two uncommitted states have the same name.
        remove_folder(&folder)?;
    }
    let [server, cluster] = seeds;
    let run = |faults, seeds| trials::fleet_faults(root, cache, faults, seeds, Some(&folder));
    // A failure of one group does not hide one of the other.
    let result = run(SERVER_FAULTS, server);
    run(CLUSTER_FAULTS, cluster).and(result)
}

/// Runs checks of stock clients.
pub fn clients(root: &Path, cache: &Cache, checks: &[&str]) -> Result<()> {
    let database = Database::start(root, Disk::Skipped)?;
    let program = database.program(&raddle(root, cache)?)?;
    for check in checks {
        Run::new("python3")
            .directory(root)
            .args(["tests/clients/run.py", "--only", check, "--raddle"])
            .arg(&program)
            .arg("--parts")
            .arg(cache.parts())
            .minutes(20)
            .go()?;
    }
    Ok(())
}

/// Runs clients that are cut off, and servers that are killed, in these numbers.
pub fn rejoin(root: &Path, cache: &Cache, size: [&str; 4]) -> Result<()> {
    let database = Database::start(root, Disk::Waits)?;
    let program = database.program(&raddle(root, cache)?)?;
    trials::rejoin(root, cache, &program, size, trials::FULL_SIZE)
}

/// Runs the suite of every store on a cluster, and compares the store with the one in memory in this
/// many cases.
pub fn suite(root: &Path, cache: &Cache, cases: &str) -> Result<()> {
    let cluster = Database::start_cluster(root)?;
    Run::new(tools::cargo_nextest(cache)?)
        .directory(root)
        .args(["nextest", "run", "--cargo-profile", workspace::PROFILE])
        .args(workspace::SELECTION)
        .args(["--profile", "prove", "--no-tests", "fail", "--filterset"])
        .arg("binary(fleet) and test(/^(suite|tenants|transfers)::/)")
        .env("CARGO_TARGET_DIR", cache.target())
        .env("RADDLE_TEST_CLUSTER", cluster.folder.join("pg"))
        .env("RADDLE_TEST_CASES", cases)
        .minutes(60)
        .go()
}
