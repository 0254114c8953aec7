//! Bits change in the database and its log. What is served then is what was stored, or nothing.

mod bit_flip;
mod ground_truth;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use raddle_store::Archive;
use tokio::runtime::Runtime;

use crate::child::Child;
use crate::rng::Rng;
use crate::verdict::{self, VerdictRow};
use bit_flip::{DamageOutcome, DamagedFile, ExportCounts, Flip};
use ground_truth::GroundTruth;

/// How much is done before the database is closed for the first time, so that it holds something.
const ACTS: u64 = 60;

/// How many lines a writer then says before it is killed, so that the log holds something too.
const WORDS: u64 = 100;

/// How long the log is to be, and how many writers may try to get it there.
const LOG_BYTES_MIN: u64 = 200_000;
const ATTEMPTS_MAX: u64 = 50;

/// With fewer threads than these, damage to one says little of the others.
const THREADS_MIN: usize = 3;

/// How many violations are told in full.
const REPORTED_MAX: usize = 10;

/// Change bits.
#[derive(Clone, Debug, clap::Args)]
pub struct Damage {
    /// How many bits, one at a time.
    #[arg(long, default_value_t = 2000)]
    flips: u64,
    /// Decides what is stored and which bits change.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the homes are made, for a short time.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

impl Damage {
    /// Lets writers be killed until the log holds enough, because deleting a thread empties it, and until there
    /// are enough threads: each writer begins its own, leaves the others alone, and does not delete its last.
    fn fill(&self, home: &Path) -> Result<()> {
        for attempt in 0..ATTEMPTS_MAX {
            let second = Child::start(home, "second", self.seed + attempt, &[], None)?;
            second.kill_after(WORDS, Duration::ZERO)?;
            let log = fs::metadata(home.join("journal.sqlite-wal"))?.len();
            let archive = Archive::open(home)?.context("there is a journal")?;
            if log > LOG_BYTES_MIN && archive.threads()?.len() >= THREADS_MIN {
                return Ok(());
            }
        }
        bail!("the log stays too short to be damaged, or the threads too few to tell them apart");
    }

    /// Runs, and says whether nothing false was served.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        let scratch = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::tempdir_in(scratch)?;
        let home = folder.path().join("home");
        Child::for_a_while(&home, "first", self.seed, ACTS)?.wait()?;
        self.fill(&home)?;
        let truth = runtime.block_on(GroundTruth::of(&home, folder.path()))?;
        let begun = Instant::now();
        let mut rng = Rng::new(self.seed);
        let mut counts: BTreeMap<(DamagedFile, DamageOutcome), u64> = BTreeMap::new();
        let mut violations = 0;
        let mut told = 0;
        let mut saved = ExportCounts::default();
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
            let seen = runtime.block_on(bit_flip::look(&copy, &truth, file))?;
            *counts.entry((file, seen.outcome)).or_default() += 1;
            if seen.outcome == DamageOutcome::Refused {
                saved.whole += seen.exports.whole;
                saved.partly += seen.exports.partly;
                saved.not += seen.exports.not;
            }
            violations += u64::from(seen.outcome.is_violation());
            if seen.outcome.is_violation() && told < REPORTED_MAX {
                told += 1;
                println!("VIOLATION: {flip}: {}", seen.how);
            }
            fs::remove_dir_all(&copy)?;
        }
        let mut rows = vec![
            VerdictRow::count("threads", truth.threads.len() as u64),
            VerdictRow::count("records", truth.records()),
            VerdictRow::count("seconds", begun.elapsed().as_secs()),
        ];
        for ((file, outcome), count) in counts {
            let what = format!("{file}: {outcome}");
            rows.push(match outcome.is_violation() {
                true => VerdictRow::never(what, count),
                false => VerdictRow::count(what, count),
            });
        }
        for (how, count) in [
            ("whole", saved.whole),
            ("up to where they are damaged", saved.partly),
            ("not at all", saved.not),
        ] {
            let what = format!("of those that do not open, threads exported {how}");
            rows.push(VerdictRow::count(what, count));
        }
        rows.push(VerdictRow::never("violations", violations));
        Ok(verdict::print("bits changed, one at a time", &rows))
    }
}
