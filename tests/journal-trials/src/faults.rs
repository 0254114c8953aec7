//! A disk that fails or is full: what was told is kept, and what cannot be kept is not told.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use crate::child::{Child, Inject};
use crate::crash::check;
use crate::ledger::Ledger;
use crate::verdict::{self, VerdictRow};

/// What waits for the disk.
const SYNCS: &str = "fsync,fdatasync";

/// What needs room.
const WRITES: &str = "pwrite64";

/// The smallest disk that is filled, the largest, and the step between them, in KiB.
/// 1,024 KiB of each are held back for the ends of turns.
const DISKS_KIB: (u64, u64, u64) = (64, 3584, 64);

/// Let the disk fail or be full.
#[derive(Clone, Debug, clap::Args)]
pub struct Faults {
    /// Decides what is written.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the homes are made, for a short time.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// Fill real disks mounted here; started by this trial in a place where it may mount them.
    #[arg(long, hide = true)]
    inside: bool,
}

/// What was seen.
#[derive(Default)]
struct FaultCounters {
    runs: u64,
    failures: u64,
    told: u64,
    taken_up: u64,
    power_after_doubt: u64,
    turns_failed: u64,
    violations: u64,
}

impl Faults {
    /// Runs, and says whether all went well.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        if self.inside {
            return self.disks(runtime);
        }
        let mut well = true;
        let kinds = [
            ("one sync fails", SYNCS, "EIO", ""),
            ("every sync fails from one on", SYNCS, "EIO", "+"),
            ("one write finds no room", WRITES, "ENOSPC", ""),
            ("no write finds room from one on", WRITES, "ENOSPC", "+"),
        ];
        for (title, calls, error, rest) in kinds {
            let begun = Instant::now();
            let tally = self.injected(runtime, calls, error, rest)?;
            well &= tally.print(title, begun);
        }
        well &= self.mounted()?;
        Ok(well)
    }

    fn scratch(&self) -> PathBuf {
        self.scratch.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// The call fails for the first time, for the second, and so on until it is not made so often.
    fn injected(
        &self,
        runtime: &Runtime,
        calls: &str,
        error: &str,
        rest: &str,
    ) -> Result<FaultCounters> {
        let mut tally = FaultCounters::default();
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
            end.lines.into_iter().for_each(|line| ledger.take(line));
            tally.failures += end.injected;
            if rest.is_empty() {
                // The disk works again, so what follows is safe again.
                ledger.power_after_doubt = 0;
            }
            let context = || format!("{calls} fails with {error} at number {number}{rest}");
            tally.hold(runtime, &home, ledger).with_context(context)?;
            if tally.violations > 0 {
                let _ = folder.keep();
                break;
            }
        }
        Ok(tally)
    }

    /// Fills real disks, if this may mount any.
    fn mounted(&self) -> Result<bool> {
        for words in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
            let may = Command::new("unshare")
                .args(words)
                .args(["sh", "-c", "mount -t tmpfs -o size=64k tmpfs \"$0\""])
                .arg(self.scratch())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if !may.is_ok_and(|status| status.success()) {
                continue;
            }
            let status = Command::new("unshare")
                .args(words)
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

    /// A writer works on a disk until it is full; then there is room again.
    fn disks(&self, runtime: &Runtime) -> Result<bool> {
        let begun = Instant::now();
        let mut tally = FaultCounters::default();
        let (least, most, step) = DISKS_KIB;
        let mut size = least;
        while size <= most && tally.violations == 0 {
            let folder = tempfile::tempdir_in(self.scratch())?;
            mount(folder.path(), &format!("size={size}k"))?;
            let home = folder.path().join("home");
            let child = Child::for_a_while(&home, "filling", self.seed + size, 40)?;
            let end = child.wait()?;
            let mut ledger = Ledger::default();
            end.lines.into_iter().for_each(|line| ledger.take(line));
            tally.failures += ledger.failures;
            tally.turns_failed += ledger.turns_failed;
            if ledger.turns_left_open > 0 {
                tally.violations += 1;
                println!("VIOLATION: a turn has no end on a disk of {size} KiB that is full");
            }
            mount(folder.path(), "remount,size=64m")?;
            let context = || format!("on a disk of {size} KiB");
            let held = tally.hold(runtime, &home, ledger).with_context(context);
            let gone = Command::new("umount").arg(folder.path()).status()?;
            ensure!(gone.success(), "the disk cannot be unmounted");
            held?;
            size += step;
        }
        let title = "real disks that are full, smaller and larger";
        let ended = VerdictRow::new(
            "turns that were ended on a full disk",
            tally.turns_failed as f64,
            "",
            verdict::Limit::AtLeast(1.0),
        );
        Ok(tally.print_with(title, begun, Some(ended)))
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
    fn hold(&mut self, runtime: &Runtime, home: &Path, mut ledger: Ledger) -> Result<()> {
        self.runs += 1;
        self.told += ledger.records;
        self.power_after_doubt += ledger.power_after_doubt;
        if let Err(error) = runtime.block_on(check(home, &mut ledger, &mut self.taken_up)) {
            self.violations += 1;
            println!("VIOLATION: {error:#}");
        }
        Ok(())
    }

    fn print(&self, title: &str, begun: Instant) -> bool {
        self.print_with(title, begun, None)
    }

    fn print_with(&self, title: &str, begun: Instant, more: Option<VerdictRow>) -> bool {
        let rows = [
            VerdictRow::count("runs", self.runs),
            VerdictRow::new(
                "failures that were met",
                self.failures as f64,
                "",
                verdict::Limit::AtLeast(1.0),
            ),
            VerdictRow::count("records that were told", self.told),
            VerdictRow::count("threads that took their next turn", self.taken_up),
            VerdictRow::count("seconds", begun.elapsed().as_secs()),
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
