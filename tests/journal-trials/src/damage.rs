//! Flips bits in the database and its WAL. Only stored records may be served afterwards, or
//! nothing.

mod bit_flip;
mod ground_truth;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use raddle_store::Archive;
use support::Rng;
use tokio::runtime::Runtime;

use crate::child::Child;
use crate::verdict::{self, VerdictRow};
use bit_flip::{DamageOutcome, DamagedFile, ExportCounts, Flip};
use ground_truth::GroundTruth;

/// Number of actions before the database is closed for the first time, so that it holds some data.
const ACTS: u64 = 60;

/// Number of lines that a writer then prints before it is killed, so that the WAL holds some data
/// too.
const LINES: u64 = 100;

/// Minimum length of the WAL, and maximum number of writers to get it there.
const LOG_BYTES_MIN: u64 = 200_000;
const ATTEMPTS_MAX: u64 = 50;

/// Minimum number of threads. With fewer, damage to one shows little about the others.
const THREADS_MIN: usize = 3;

/// Maximum number of violations that are printed in full.
const REPORTED_MAX: usize = 10;

/// Flip bits.
#[derive(Clone, Debug, clap::Args)]
pub struct Damage {
    /// Number of bits, one at a time.
    #[arg(long, default_value_t = 2000)]
    flips: u64,
    /// Seed for the stored data and the flipped bits.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the temporary homes.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

impl Damage {
    /// Kills writers until the WAL is long enough, because deleting a thread empties it, and until
    /// there are enough threads. Each writer starts its own, leaves the others alone, and does not
    /// delete its last.
    fn fill(&self, home: &Path) -> Result<()> {
        for attempt in 0..ATTEMPTS_MAX {
            let second = Child::start(home, "second", self.seed + attempt, &[], None)?;
            second.kill_after(LINES, Duration::ZERO)?;
            let log = fs::metadata(home.join("journal.sqlite-wal"))?.len();
            let archive = Archive::open(home)?.context("there is a journal")?;
            if log > LOG_BYTES_MIN && archive.threads()?.len() >= THREADS_MIN {
                return Ok(());
            }
        }
        bail!("the log stays too short to be damaged, or the threads too few to tell them apart");
    }

    /// Runs the trial. Returns whether no false data was served.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        let scratch = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::tempdir_in(scratch)?;
        let home = folder.path().join("home");
        Child::start_with_acts(&home, "first", self.seed, ACTS)?.wait()?;
        self.fill(&home)?;
        let truth = runtime.block_on(GroundTruth::of(&home, folder.path()))?;
        let start = Instant::now();
        let mut rng = Rng::new(self.seed);
        let mut counts: BTreeMap<(DamagedFile, DamageOutcome), u64> = BTreeMap::new();
        let mut violations = 0;
        let mut reported = 0;
        let mut exports = ExportCounts::default();
        for number in 0..self.flips {
            let file = if number % 2 == 0 {
                DamagedFile::Database
            } else {
                DamagedFile::Log
            };
            let flip = Flip::of(&home, file, &mut rng)?;
            let copy = folder.path().join("copy");
            ground_truth::copy(&home, &copy)?;
            flip.make(&copy)?;
            let report = runtime.block_on(bit_flip::inspect(&copy, &truth, file))?;
            *counts.entry((file, report.outcome)).or_default() += 1;
            if report.outcome == DamageOutcome::Refused {
                exports.whole += report.exports.whole;
                exports.partly += report.exports.partly;
                exports.not += report.exports.not;
            }
            violations += u64::from(report.outcome.is_violation());
            if report.outcome.is_violation() && reported < REPORTED_MAX {
                reported += 1;
                println!("VIOLATION: {flip}: {}", report.how);
            }
            fs::remove_dir_all(&copy)?;
        }
        let mut rows = vec![
            VerdictRow::count("threads", truth.threads.len() as u64),
            VerdictRow::count("records", truth.records()),
            VerdictRow::count("seconds", start.elapsed().as_secs()),
        ];
        for ((file, outcome), count) in counts {
            let what = format!("{file}: {outcome}");
            rows.push(match outcome.is_violation() {
                true => VerdictRow::never(what, count),
                false => VerdictRow::count(what, count),
            });
        }
        for (how, count) in [
            ("whole", exports.whole),
            ("up to where they are damaged", exports.partly),
            ("not at all", exports.not),
        ] {
            let what = format!("of those that do not open, threads exported {how}");
            rows.push(VerdictRow::count(what, count));
        }
        rows.push(VerdictRow::never("violations", violations));
        Ok(verdict::print("bits changed, one at a time", &rows))
    }
}
