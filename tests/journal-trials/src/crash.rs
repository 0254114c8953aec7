//! A process that writes is killed; whoever comes next finds everything that was told.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use raddle_core::{Input, ThreadId};
use raddle_store::{LocalJournal, Options};
use tokio::runtime::Runtime;

use crate::child::{Child, Inject};
use crate::ledger::{self, Ledger, WriterLine};
use crate::live::LiveThread;
use crate::rng::Rng;
use crate::turn::{self, Grain};
use crate::verdict::{self, Limit, VerdictRow};

/// A home is used for so many kills before a new one is begun: an old one takes long to check.
const KILLS_PER_HOME: u64 = 25;

/// How many writers are killed at a time, in homes of their own.
const WORKERS: usize = 2;

/// A writer is killed when it has said fewer lines than this,
const WORDS_MAX: u64 = 40;

/// and has lived for less than this since then.
const WRITER_AGE_MAX: Duration = Duration::from_millis(20);

/// What a writer changes files with, and what comes between that and telling of it. Killed before each
/// of these it dies before and after each point at which something is committed.
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

/// Kill a process that writes.
#[derive(Clone, Debug, clap::Args)]
pub struct Crash {
    /// How many kills at random moments, alone and then as many beside another process.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// How often each call that changes a file is a writer's last.
    #[arg(long, default_value_t = 20)]
    repeats: u64,
    /// Decides what is written and when it is killed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the homes are made, for a short time.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

/// What was seen.
#[derive(Default)]
struct CrashCounters {
    kills: u64,
    told: u64,
    power: u64,
    taken_up: u64,
    early: u64,
    violations: u64,
}

impl Crash {
    /// Runs, and says whether all went well.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        let mut well = true;
        for beside in [false, true] {
            if self.kills == 0 {
                continue;
            }
            let begun = Instant::now();
            let tally = self.random(runtime, beside)?;
            let title = if beside {
                "killed at random moments, beside another process"
            } else {
                "killed at random moments, alone"
            };
            well &= tally.print(title, begun.elapsed());
        }
        if self.repeats > 0 {
            well &= self.points()?;
        }
        Ok(well)
    }

    fn scratch(&self) -> Result<tempfile::TempDir> {
        let folder = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        Ok(tempfile::tempdir_in(folder)?)
    }

    fn random(&self, runtime: &Runtime, beside: bool) -> Result<CrashCounters> {
        let mut tally = CrashCounters::default();
        let mut rng = Rng::new(self.seed ^ u64::from(beside) << 32);
        while tally.kills < self.kills && tally.violations == 0 {
            let folder = self.scratch()?;
            let home = folder.path().join("home");
            let mut other = match beside {
                true => Some(Child::start(&home, "beside", rng.bits(), &[], None)?),
                false => None,
            };
            let mut ledger = Ledger::default();
            let mut living = Vec::new();
            for _ in 0..KILLS_PER_HOME.min(self.kills - tally.kills) {
                let child = Child::start(&home, "killed", rng.bits(), &living, None)?;
                let most = u64::try_from(WRITER_AGE_MAX.as_micros()).unwrap_or(u64::MAX);
                let life = Duration::from_micros(rng.below(most));
                // Some die while they open the journal, most while they write.
                let end = child.kill_after(rng.below(WORDS_MAX), life)?;
                tally.kills += 1;
                tally.take(&mut ledger, end.lines, end.ended_by_itself);
                match runtime.block_on(check(&home, &mut ledger, &mut tally.taken_up)) {
                    Ok(there) => living = there,
                    Err(error) => tally.violation(&folder, &error),
                }
                if end.ended_by_itself {
                    let error = anyhow::anyhow!("a writer ended by itself: {}", end.errors);
                    tally.violation(&folder, &error);
                }
                if tally.violations > 0 {
                    let _ = folder.keep();
                    return Ok(tally);
                }
            }
            if let Some(other) = other.take() {
                let end = other.kill_after(0, Duration::ZERO)?;
                let mut second = Ledger::default();
                tally.take(&mut second, end.lines, end.ended_by_itself);
                let checked = runtime.block_on(check(&home, &mut second, &mut tally.taken_up));
                if let Err(error) = checked {
                    tally.violation(&folder, &error);
                    let _ = folder.keep();
                }
            }
        }
        Ok(tally)
    }

    /// Killed before each call that changes a file, one after the other.
    fn points(&self) -> Result<bool> {
        let begun = Instant::now();
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<Points>> {
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            let mut done = Vec::new();
            while let Some(call) = CALLS.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push(self.points_of(call, &runtime)?);
            }
            Ok(done)
        };
        let done: Vec<Points> = std::thread::scope(|scope| {
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
        let mut tally = CrashCounters::default();
        let mut rows = Vec::new();
        for of_call in done {
            rows.push(VerdictRow::count(of_call.call, of_call.points));
            tally.add(&of_call.counters);
        }
        verdict::print(
            "how often a writer makes these calls, and so is killed before them",
            &rows,
        );
        Ok(tally.print("killed before each of them", begun.elapsed()))
    }

    fn points_of(&self, call: &'static str, runtime: &Runtime) -> Result<Points> {
        let mut of_call = Points {
            call,
            points: 0,
            counters: CrashCounters::default(),
        };
        let tally = &mut of_call.counters;
        for number in 1.. {
            for repeat in 0..self.repeats {
                let folder = self.scratch()?;
                let home = folder.path().join("home");
                let inject = Inject::kill(call, number);
                let seed = self.seed + repeat;
                let end = Child::start(&home, "killed", seed, &[], Some(&inject))?.wait()?;
                if end.is_done() && repeat == 0 {
                    // The script is over before this call is made so often.
                    return Ok(of_call);
                }
                tally.kills += 1;
                let mut ledger = Ledger::default();
                let killed = end.killed || end.is_done();
                tally.take(&mut ledger, end.lines, !killed);
                let checked = if killed {
                    runtime.block_on(check(&home, &mut ledger, &mut tally.taken_up))
                } else {
                    Err(anyhow::anyhow!("a writer ended by itself: {}", end.errors))
                };
                if let Err(error) = checked {
                    let error = error.context(format!("killed before {call} number {number}"));
                    tally.violation(&folder, &error);
                    let _ = folder.keep();
                    return Ok(of_call);
                }
            }
            of_call.points += 1;
        }
        Ok(of_call)
    }
}

/// What came of killing before one call.
struct Points {
    call: &'static str,
    points: u64,
    counters: CrashCounters,
}

impl CrashCounters {
    /// Takes in what a writer said, and whether it ended by itself.
    fn take(&mut self, ledger: &mut Ledger, lines: Vec<WriterLine>, early: bool) {
        let (told, power) = (ledger.records, ledger.power);
        lines.into_iter().for_each(|line| ledger.take(line));
        self.told += ledger.records - told;
        self.power += ledger.power - power;
        self.early += u64::from(early);
    }

    fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.told += other.told;
        self.power += other.power;
        self.taken_up += other.taken_up;
        self.early += other.early;
        self.violations += other.violations;
    }

    fn violation(&mut self, folder: &tempfile::TempDir, error: &anyhow::Error) {
        self.violations += 1;
        println!("VIOLATION, kept in {}: {error:#}", folder.path().display());
    }

    fn print(&self, title: &str, took: Duration) -> bool {
        verdict::print(
            title,
            &[
                VerdictRow::count("kills", self.kills),
                VerdictRow::new(
                    "records that were told",
                    self.told as f64,
                    "",
                    Limit::AtLeast(self.kills as f64),
                ),
                VerdictRow::count("of these, to survive the power", self.power),
                VerdictRow::count("threads that took their next turn", self.taken_up),
                VerdictRow::count("seconds", took.as_secs()),
                VerdictRow::never("writers that ended by themselves", self.early),
                VerdictRow::never("violations", self.violations),
            ],
        )
    }
}

/// Everything told is there, every thread is taken and takes its next turn, and all is whole after it.
pub async fn check(home: &Path, ledger: &mut Ledger, taken_up: &mut u64) -> Result<Vec<ThreadId>> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let there = ledger.check(&store).await?;
    let mut rng = Rng::new(there.len() as u64 ^ u64::from(std::process::id()));
    for id in &there {
        let go_on = next_turn(&store, *id, &mut rng, ledger);
        go_on
            .await
            .with_context(|| format!("thread {id} does not go on"))?;
        *taken_up += 1;
    }
    let there = ledger.check(&store).await?;
    drop(store);
    ledger::verify(home)?;
    Ok(there)
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
