//! Kills writing processes; the next process must find every acknowledged record.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use raddle_core::{Input, ThreadId};
use raddle_store::{LocalJournal, Options};
use support::Rng;
use tokio::runtime::Runtime;

use crate::child::{Child, Inject};
use crate::ledger::{self, Ledger, WriterLine};
use crate::live::LiveThread;
use crate::turn::{self, Grain};
use crate::verdict::{self, Limit, VerdictRow};

/// Kills per home. An older home takes long to check.
const KILLS_PER_HOME: u64 = 25;

/// Number of concurrent writers to kill, each in its own home.
const WORKERS: usize = 2;

/// Maximum number of lines that a writer prints before it is killed.
const LINES_MAX: u64 = 40;

/// Maximum time between its last line and the kill.
const WRITER_AGE_MAX: Duration = Duration::from_millis(20);

/// System calls with which a writer changes files and acknowledges records. A writer killed before
/// each of them dies before and after each commit point.
const CALLS: [&str; 9] = [
    "pwrite64",
    "fdatasync",
    "fsync",
    "rename",
    "unlink",
    "ftruncate",
    "mkdir",
    "fcntl",
    "write",
];

/// Kill writing processes.
#[derive(Clone, Debug, clap::Args)]
pub struct Crash {
    /// Number of kills at random moments, alone and then as many beside another process.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Number of kills before each call that changes a file.
    #[arg(long, default_value_t = 20)]
    repeats: u64,
    /// Seed for the writes and the times of the kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the temporary homes.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

/// Counters of a run.
#[derive(Default)]
struct CrashCounters {
    kills: u64,
    acknowledged: u64,
    power: u64,
    resumed: u64,
    early: u64,
    violations: u64,
}

impl Crash {
    /// Runs the trial. Returns whether it succeeded.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        let mut ok = true;
        for with_other in [false, true] {
            if self.kills == 0 {
                continue;
            }
            let start = Instant::now();
            let counters = self.random(runtime, with_other)?;
            let title = if with_other {
                "killed at random moments, beside another process"
            } else {
                "killed at random moments, alone"
            };
            ok &= counters.print(title, start.elapsed());
        }
        if self.repeats > 0 {
            ok &= self.points()?;
        }
        Ok(ok)
    }

    fn scratch(&self) -> Result<tempfile::TempDir> {
        let folder = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        Ok(tempfile::tempdir_in(folder)?)
    }

    fn random(&self, runtime: &Runtime, with_other: bool) -> Result<CrashCounters> {
        let mut counters = CrashCounters::default();
        let mut rng = Rng::new(self.seed ^ u64::from(with_other) << 32);
        while counters.kills < self.kills && counters.violations == 0 {
            let folder = self.scratch()?;
            let home = folder.path().join("home");
            let mut other = match with_other {
                true => Some(Child::start(&home, "beside", rng.bits(), &[], None)?),
                false => None,
            };
            let mut ledger = Ledger::default();
            let mut living = Vec::new();
            for _ in 0..KILLS_PER_HOME.min(self.kills - counters.kills) {
                let child = Child::start(&home, "killed", rng.bits(), &living, None)?;
                let micros_max = u64::try_from(WRITER_AGE_MAX.as_micros()).unwrap_or(u64::MAX);
                let lifetime = Duration::from_micros(rng.below(micros_max));
                // Some die while they open the journal, most while they write.
                let end = child.kill_after(rng.below(LINES_MAX), lifetime)?;
                counters.kills += 1;
                counters.record(&mut ledger, end.lines, end.ended_by_itself);
                match runtime.block_on(check(&home, &mut ledger, &mut counters.resumed)) {
                    Ok(threads) => living = threads,
                    Err(error) => counters.violation(&folder, &error),
                }
                if end.ended_by_itself {
                    let error = anyhow::anyhow!("a writer ended by itself: {}", end.errors);
                    counters.violation(&folder, &error);
                }
                if counters.violations > 0 {
                    let _ = folder.keep();
                    return Ok(counters);
                }
            }
            if let Some(other) = other.take() {
                let end = other.kill_after(0, Duration::ZERO)?;
                let mut second = Ledger::default();
                counters.record(&mut second, end.lines, end.ended_by_itself);
                let checked = runtime.block_on(check(&home, &mut second, &mut counters.resumed));
                if let Err(error) = checked {
                    counters.violation(&folder, &error);
                    let _ = folder.keep();
                }
            }
        }
        Ok(counters)
    }

    /// Kills a writer before each call that changes a file, one after the other.
    fn points(&self) -> Result<bool> {
        let start = Instant::now();
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<CallKills>> {
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            let mut done = Vec::new();
            while let Some(call) = CALLS.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push(self.points_of(call, &runtime)?);
            }
            Ok(done)
        };
        let done: Vec<CallKills> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
            let done = workers.into_iter().map(|it| match it.join() {
                Ok(done) => done,
                Err(_) => Err(anyhow::anyhow!("a trial panicked")),
            });
            done.collect::<Result<Vec<_>>>()
        })?
        .into_iter()
        .flatten()
        .collect();
        let mut counters = CrashCounters::default();
        let mut rows = Vec::new();
        for result in done {
            rows.push(VerdictRow::count(result.call, result.points));
            counters.add(&result.counters);
        }
        verdict::print(
            "how often a writer makes these calls, and so is killed before them",
            &rows,
        );
        Ok(counters.print("killed before each of them", start.elapsed()))
    }

    fn points_of(&self, call: &'static str, runtime: &Runtime) -> Result<CallKills> {
        let mut result = CallKills {
            call,
            points: 0,
            counters: CrashCounters::default(),
        };
        let counters = &mut result.counters;
        for number in 1.. {
            for repeat in 0..self.repeats {
                let folder = self.scratch()?;
                let home = folder.path().join("home");
                let inject = Inject::kill(call, number);
                let seed = self.seed + repeat;
                let end = Child::start(&home, "killed", seed, &[], Some(&inject))?.wait()?;
                if end.is_done() && repeat == 0 {
                    // The script ends before this call is made that often.
                    return Ok(result);
                }
                counters.kills += 1;
                let mut ledger = Ledger::default();
                let killed = end.killed || end.is_done();
                counters.record(&mut ledger, end.lines, !killed);
                let checked = if killed {
                    runtime.block_on(check(&home, &mut ledger, &mut counters.resumed))
                } else {
                    Err(anyhow::anyhow!("a writer ended by itself: {}", end.errors))
                };
                if let Err(error) = checked {
                    let error = error.context(format!("killed before {call} number {number}"));
                    counters.violation(&folder, &error);
                    let _ = folder.keep();
                    return Ok(result);
                }
            }
            result.points += 1;
        }
        Ok(result)
    }
}

/// Result of the kills before one call.
struct CallKills {
    call: &'static str,
    points: u64,
    counters: CrashCounters,
}

impl CrashCounters {
    /// Records the output of a writer, and whether it ended by itself.
    fn record(&mut self, ledger: &mut Ledger, lines: Vec<WriterLine>, early: bool) {
        let (acknowledged, power) = (ledger.records, ledger.power);
        lines.into_iter().for_each(|line| ledger.record(line));
        self.acknowledged += ledger.records - acknowledged;
        self.power += ledger.power - power;
        self.early += u64::from(early);
    }

    fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.acknowledged += other.acknowledged;
        self.power += other.power;
        self.resumed += other.resumed;
        self.early += other.early;
        self.violations += other.violations;
    }

    fn violation(&mut self, folder: &tempfile::TempDir, error: &anyhow::Error) {
        self.violations += 1;
        println!("VIOLATION, kept in {}: {error:#}", folder.path().display());
    }

    fn print(&self, title: &str, elapsed: Duration) -> bool {
        verdict::print(
            title,
            &[
                VerdictRow::count("kills", self.kills),
                VerdictRow::new(
                    "records that were told",
                    self.acknowledged as f64,
                    "",
                    Limit::AtLeast(self.kills as f64),
                ),
                VerdictRow::count("of these, to survive the power", self.power),
                VerdictRow::count("threads that took their next turn", self.resumed),
                VerdictRow::count("seconds", elapsed.as_secs()),
                VerdictRow::never("writers that ended by themselves", self.early),
                VerdictRow::never("violations", self.violations),
            ],
        )
    }
}

/// Checks that every acknowledged record exists, that every thread can be opened and take a turn,
/// and that the journal is intact afterwards.
pub async fn check(home: &Path, ledger: &mut Ledger, resumed: &mut u64) -> Result<Vec<ThreadId>> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let threads = ledger.check(&store).await?;
    let mut rng = Rng::new(threads.len() as u64 ^ u64::from(std::process::id()));
    for id in &threads {
        let continued = next_turn(&store, *id, &mut rng, ledger);
        continued
            .await
            .with_context(|| format!("thread {id} does not go on"))?;
        *resumed += 1;
    }
    let threads = ledger.check(&store).await?;
    drop(store);
    ledger::verify(home)?;
    Ok(threads)
}

async fn next_turn(
    store: &LocalJournal,
    id: ThreadId,
    rng: &mut Rng,
    ledger: &mut Ledger,
) -> Result<()> {
    let mut live = LiveThread::open(store, id, "checker", ledger).await?;
    turn::finish(&mut live, Vec::new(), Grain::Coarse, rng, ledger).await?;
    let input = vec![Input::text("go on")];
    turn::play(&mut live, input, Vec::new(), Grain::Coarse, rng, ledger).await?;
    live.release(ledger).await
}
