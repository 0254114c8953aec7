//! Failing and full disks: acknowledged records must survive, and a record that cannot be stored
//! must not be acknowledged.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use crate::child::{Child, Inject};
use crate::crash::check;
use crate::ledger::Ledger;
use crate::verdict::{self, VerdictRow};

/// System calls that sync to the disk.
const SYNCS: &str = "fsync,fdatasync";

/// System calls that need disk space.
const WRITES: &str = "pwrite64";

/// Smallest and largest size of the disks to fill, and the step between them, in KiB. 1,024 KiB of
/// each are reserved for the ends of turns.
const DISKS_KIB: (u64, u64, u64) = (64, 3584, 64);

/// Make the disk fail or be full.
#[derive(Clone, Debug, clap::Args)]
pub struct Faults {
    /// Seed for the writes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the temporary homes.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// Fill real disks mounted here; the trial starts this itself where it may mount them.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Counters of a run.
#[derive(Default)]
struct FaultCounters {
    runs: u64,
    failures: u64,
    acknowledged: u64,
    resumed: u64,
    power_after_doubt: u64,
    turns_failed: u64,
    violations: u64,
}

impl Faults {
    /// Runs the trial. Returns whether it succeeded.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        if self.inside {
            return self.disks(runtime);
        }
        let mut ok = true;
        let kinds = [
            ("one sync fails", SYNCS, "EIO", ""),
            ("every sync fails from one on", SYNCS, "EIO", "+"),
            ("one write finds no room", WRITES, "ENOSPC", ""),
            ("no write finds room from one on", WRITES, "ENOSPC", "+"),
        ];
        for (title, calls, error, rest) in kinds {
            let start = Instant::now();
            let counters = self.injected(runtime, calls, error, rest)?;
            ok &= counters.print(title, start);
        }
        ok &= self.mounted()?;
        Ok(ok)
    }

    fn scratch(&self) -> PathBuf {
        self.scratch.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Makes the first call fail, then the second, and so on until there are not that many calls.
    fn injected(
        &self,
        runtime: &Runtime,
        calls: &str,
        error: &str,
        rest: &str,
    ) -> Result<FaultCounters> {
        let mut counters = FaultCounters::default();
        for number in 1.. {
            let folder = tempfile::tempdir_in(self.scratch())?;
            let home = folder.path().join("home");
            let inject = Inject::fail(calls, error, &format!("{number}{rest}"));
            let end = Child::start(&home, "failing", self.seed, &[], Some(&inject))?.wait()?;
            if end.is_done() && end.injected == 0 {
                break;
            }
            ensure!(end.injected > 0, "a writer ended by itself: {}", end.errors);
            let mut ledger = Ledger::default();
            end.lines.into_iter().for_each(|line| ledger.record(line));
            counters.failures += end.injected;
            if rest.is_empty() {
                // The disk works again, so later acknowledgements are safe.
                ledger.power_after_doubt = 0;
            }
            let context = || format!("{calls} fails with {error} at number {number}{rest}");
            counters
                .check_home(runtime, &home, ledger)
                .with_context(context)?;
            if counters.violations > 0 {
                let _ = folder.keep();
                break;
            }
        }
        Ok(counters)
    }

    /// Fills real disks, if this process may mount any.
    fn mounted(&self) -> Result<bool> {
        for flags in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
            let probe = Command::new("unshare")
                .args(flags)
                .args(["sh", "-c", "mount -t tmpfs -o size=64k tmpfs \"$0\""])
                .arg(self.scratch())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if !probe.is_ok_and(|status| status.success()) {
                continue;
            }
            let status = Command::new("unshare")
                .args(flags)
                .arg(std::env::current_exe()?)
                .args(["faults", "--inside", "--seed", &self.seed.to_string()])
                .arg("--scratch")
                .arg(self.scratch())
                .status()?;
            return Ok(status.success());
        }
        println!(
            "\nreal disks that are full: not possible here, because this may not mount any; \
             that writes find no room was only injected"
        );
        Ok(true)
    }

    /// Runs a writer until its disk is full; then enlarges the disk and checks the home.
    fn disks(&self, runtime: &Runtime) -> Result<bool> {
        let start = Instant::now();
        let mut counters = FaultCounters::default();
        let (least, most, step) = DISKS_KIB;
        let mut size = least;
        while size <= most && counters.violations == 0 {
            let folder = tempfile::tempdir_in(self.scratch())?;
            mount(folder.path(), &format!("size={size}k"))?;
            let home = folder.path().join("home");
            let child = Child::start_with_acts(&home, "filling", self.seed + size, 40)?;
            let end = child.wait()?;
            let mut ledger = Ledger::default();
            end.lines.into_iter().for_each(|line| ledger.record(line));
            counters.failures += ledger.failures;
            counters.turns_failed += ledger.turns_failed;
            if ledger.turns_left_open > 0 {
                counters.violations += 1;
                println!("VIOLATION: a turn has no end on a disk of {size} KiB that is full");
            }
            mount(folder.path(), "remount,size=64m")?;
            let context = || format!("on a disk of {size} KiB");
            let checked = counters
                .check_home(runtime, &home, ledger)
                .with_context(context);
            let unmounted = Command::new("umount").arg(folder.path()).status()?;
            ensure!(unmounted.success(), "the disk cannot be unmounted");
            checked?;
            size += step;
        }
        let title = "real disks that are full, smaller and larger";
        let ended = VerdictRow::new(
            "turns that were ended on a full disk",
            counters.turns_failed as f64,
            "",
            verdict::Limit::AtLeast(1.0),
        );
        Ok(counters.print_with(title, start, Some(ended)))
    }
}

fn mount(folder: &Path, options: &str) -> Result<()> {
    let status = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(folder)
        .status()?;
    ensure!(status.success(), "a disk with {options} cannot be mounted");
    Ok(())
}

impl FaultCounters {
    fn check_home(&mut self, runtime: &Runtime, home: &Path, mut ledger: Ledger) -> Result<()> {
        self.runs += 1;
        self.acknowledged += ledger.records;
        self.power_after_doubt += ledger.power_after_doubt;
        if let Err(error) = runtime.block_on(check(home, &mut ledger, &mut self.resumed)) {
            self.violations += 1;
            println!("VIOLATION: {error:#}");
        }
        Ok(())
    }

    fn print(&self, title: &str, start: Instant) -> bool {
        self.print_with(title, start, None)
    }

    fn print_with(&self, title: &str, start: Instant, more: Option<VerdictRow>) -> bool {
        let rows = [
            VerdictRow::count("runs", self.runs),
            VerdictRow::new(
                "failures that were met",
                self.failures as f64,
                "",
                verdict::Limit::AtLeast(1.0),
            ),
            VerdictRow::count("records that were told", self.acknowledged),
            VerdictRow::count("threads that took their next turn", self.resumed),
            VerdictRow::count("seconds", start.elapsed().as_secs()),
            VerdictRow::never(
                "told as safe from loss of power while syncs fail",
                self.power_after_doubt,
            ),
            VerdictRow::never("violations", self.violations),
        ];
        let rows: Vec<VerdictRow> = rows.into_iter().chain(more).collect();
        verdict::print(title, &rows)
    }
}
