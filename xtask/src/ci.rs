//! The complete CI: named steps, in order, each timed; the first failure ends the run.

mod background;
mod plan;
mod rotation;
mod steps;

pub use steps::{MUSL, release_build};

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::ci::background::Background;
use crate::ci::plan::{CiStep, StepChoice};
use crate::ci::rotation::Day;
use crate::run::{Punctuality, Run};
use crate::{mirror, processes, repository};

/// Number of attempts at a check with a time limit before lateness is a failure.
const TRIES: usize = 3;

/// Context of all steps. Cheap to clone.
#[derive(Clone)]
pub struct Ci {
    /// The checkout itself, with its git directory.
    checkout: PathBuf,
    /// The copy of it that is built and tested.
    root: PathBuf,
    cache: Cache,
    /// Steps that passed only on a later attempt.
    unsteady: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Ci {
    fn open() -> Result<Self> {
        let cache = Cache::open()?;
        Ok(Self {
            checkout: repository::root()?,
            root: cache.source(),
            cache,
            unsteady: Arc::default(),
        })
    }

    /// Updates the copy. Requires the `ci` lock.
    fn refresh(&self) -> Result<()> {
        let refresh = mirror::refresh(&self.checkout, &self.root)?;
        println!(
            "{} files of the checkout differ from the last run's, {} are gone",
            refresh.written, refresh.removed
        );
        Ok(())
    }

    /// Prepares a program in the root of the repository, which builds into the cache.
    fn run(&self, program: impl AsRef<std::ffi::OsStr>) -> Run {
        Run::new(program)
            .directory(&self.root)
            .env("CARGO_TARGET_DIR", self.cache.target())
    }

    fn cargo(&self, words: &[&str]) -> Run {
        self.run("cargo").args(words)
    }

    /// Returns the path of the binary under test: the one that users get.
    fn raddle(&self) -> PathBuf {
        self.cache.target().join(steps::MUSL).join("release/raddle")
    }

    /// Runs a check that has a time limit, up to three times in fresh processes, as long as only
    /// the limit was missed. A briefly busy machine is not a defect; three late runs are.
    fn steadily(&self, step: &'static str, check: impl Fn() -> Result<Punctuality>) -> Result<()> {
        for attempt in 1..=TRIES {
            if check()? == Punctuality::InTime {
                return Ok(());
            }
            println!("unsteady: {step} was late in try {attempt} of {TRIES}");
            self.mark_unsteady(step);
        }
        bail!("late {TRIES} times")
    }

    fn mark_unsteady(&self, step: &'static str) {
        let mut unsteady = self.unsteady.lock().unwrap_or_else(PoisonError::into_inner);
        unsteady.insert(step);
    }

    fn is_unsteady(&self, step: &str) -> bool {
        let unsteady = self.unsteady.lock().unwrap_or_else(PoisonError::into_inner);
        unsteady.contains(step)
    }
}

pub fn command(mut arguments: Arguments) -> Result<()> {
    let list = arguments.flag("--list");
    let every_slice = arguments.flag("--every-slice");
    let only = arguments.value("--only")?;
    let from = arguments.value("--from")?;
    let day = match arguments.number("--day")? {
        Some(number) => Day(number),
        None => Day::today()?,
    };
    arguments.end()?;
    let choice = match (only, from) {
        (None, None) => StepChoice::All,
        (Some(names), None) => StepChoice::Only(names.split(',').map(str::to_owned).collect()),
        (None, Some(name)) => StepChoice::From(name),
        (Some(_), Some(_)) => bail!("--only and --from do not go together"),
    };
    let day = (!every_slice).then_some(day);
    let steps = plan::plan(steps::STEPS, &choice, day)?;
    if list {
        for step in &steps {
            println!("{:<11}{}", step.name, step.about);
        }
        return Ok(());
    }
    if let (Some(day), StepChoice::All | StepChoice::From(_)) = (day, &choice) {
        println!("{}", day.describe(steps::STEPS));
    }
    run(&steps)
}

/// Returns the current date in UTC.
pub fn today() -> Result<String> {
    Ok(Day::today()?.to_string())
}

/// Builds the binary that users get, and returns its path.
pub fn release(cache: &Cache) -> Result<PathBuf> {
    let ci = Ci {
        cache: cache.clone(),
        ..Ci::open()?
    };
    ci.refresh()?;
    steps::release(&ci)?;
    Ok(ci.raddle())
}

struct StepRow {
    step: &'static str,
    took: Duration,
    outcome: StepOutcome,
    is_background: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepOutcome {
    Ok,
    Unsteady,
    Failed,
}

fn run(steps: &[&'static CiStep]) -> Result<()> {
    let ci = Ci::open()?;
    let _lock = ci.cache.lock("ci")?;
    ci.cache.prune()?;
    ci.refresh()?;

    let start = Instant::now();
    let mut rows = Vec::new();
    let outcome = run_all(&ci, steps, &mut rows);
    if outcome.is_err() {
        // Background steps must not outlive this process.
        processes::kill_descendants(std::process::id());
    }
    let table = table(&rows, start.elapsed());
    print!("\n{table}");
    keep(&ci, &table)?;
    outcome
}

fn run_all(ci: &Ci, steps: &[&'static CiStep], rows: &mut Vec<StepRow>) -> Result<()> {
    let mut background: Vec<Background> = Vec::new();
    for step in steps {
        while let Some(at) = background
            .iter()
            .position(|it| step.needs.contains(&it.step))
        {
            finish(ci, background.remove(at), rows)?;
        }
        if step.background {
            println!("\n=== {} (to the background)", step.name);
            let (ci, run) = (ci.clone(), step.run);
            let logs = ci.cache.logs();
            background.push(Background::start(step.name, &logs, move || run(&ci))?);
            continue;
        }
        println!("\n=== {}", step.name);
        let start = Instant::now();
        let result = (step.run)(ci);
        record(ci, step.name, start.elapsed(), result, rows)?;
    }
    for it in background {
        finish(ci, it, rows)?;
    }
    Ok(())
}

fn finish(ci: &Ci, background: Background, rows: &mut Vec<StepRow>) -> Result<()> {
    let step = background.step;
    let (took, result) = background.join();
    let result = record(ci, step, took, result, rows);
    if let Some(row) = rows.last_mut() {
        row.is_background = true;
    }
    result
}

fn record(
    ci: &Ci,
    step: &'static str,
    took: Duration,
    result: Result<()>,
    rows: &mut Vec<StepRow>,
) -> Result<()> {
    let outcome = match &result {
        Err(_) => StepOutcome::Failed,
        Ok(()) if ci.is_unsteady(step) => StepOutcome::Unsteady,
        Ok(()) => StepOutcome::Ok,
    };
    rows.push(StepRow {
        step,
        took,
        outcome,
        is_background: false,
    });
    result.with_context(|| format!("step `{step}` failed"))
}

fn table(rows: &[StepRow], total: Duration) -> String {
    let mut out = format!("{:<11}{:>8}  result\n", "step", "seconds");
    for row in rows {
        let outcome = match row.outcome {
            StepOutcome::Ok => "ok",
            StepOutcome::Unsteady => "unsteady",
            StepOutcome::Failed => "FAILED",
        };
        let background_note = if row.is_background {
            ", in the background"
        } else {
            ""
        };
        let took = row.took.as_secs_f64();
        out.push_str(&format!(
            "{:<11}{took:>8.1}  {outcome}{background_note}\n",
            row.step
        ));
    }
    out.push_str(&format!("{:<11}{:>8.1}\n", "whole", total.as_secs_f64()));
    out
}

/// Appends the table to those of earlier runs, as a record of step times.
fn keep(ci: &Ci, table: &str) -> Result<()> {
    let commit = repository::commit(&ci.checkout)?;
    let path = ci.cache.logs().join("tables.txt");
    fs::create_dir_all(ci.cache.logs())?;
    let mut tables = fs::read_to_string(&path).unwrap_or_default();
    tables.push_str(&format!("{} {commit}\n{table}\n", Day::today()?));
    fs::write(&path, tables).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ci() -> Ci {
        Ci {
            checkout: PathBuf::new(),
            root: PathBuf::new(),
            cache: Cache::open().expect("a cache"),
            unsteady: Arc::default(),
        }
    }

    fn row(step: &'static str, outcome: StepOutcome) -> StepRow {
        StepRow {
            step,
            took: Duration::from_millis(1_540),
            outcome,
            is_background: step == "release",
        }
    }

    #[test]
    fn the_table_names_failures_and_unsteady_steps() {
        let rows = [
            row("format", StepOutcome::Ok),
            row("release", StepOutcome::Ok),
            row("nodes", StepOutcome::Unsteady),
            row("clippy", StepOutcome::Failed),
        ];
        assert_eq!(
            table(&rows, Duration::from_secs(9)),
            "step        seconds  result\n\
             format          1.5  ok\n\
             release         1.5  ok, in the background\n\
             nodes           1.5  unsteady\n\
             clippy          1.5  FAILED\n\
             whole           9.0\n"
        );
    }

    #[test]
    fn a_failed_step_is_named() {
        let ci = ci();
        let mut rows = Vec::new();
        record(&ci, "good", Duration::ZERO, Ok(()), &mut rows).expect("it passes");
        let failed = Err(anyhow::anyhow!("no"));
        let error = record(&ci, "bad", Duration::ZERO, failed, &mut rows).expect_err("it fails");
        assert_eq!(format!("{error:#}"), "step `bad` failed: no");
        let outcomes: Vec<StepOutcome> = rows.iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [StepOutcome::Ok, StepOutcome::Failed]);
    }

    #[test]
    fn a_failure_in_the_background_is_that_of_its_step() {
        let folder = tempfile::tempdir().expect("a folder");
        let step = Background::start("parts", folder.path(), || bail!("no")).expect("started");
        let mut rows = Vec::new();
        let error = finish(&ci(), step, &mut rows).expect_err("it fails");
        assert_eq!(format!("{error:#}"), "step `parts` failed: no");
        assert!(rows[0].is_background && rows[0].outcome == StepOutcome::Failed);
    }

    #[test]
    fn late_check_is_unsteady_and_failed_check_fails_at_once() {
        let ci = ci();
        let tries = std::cell::Cell::new(0);
        let late = |times: usize| {
            tries.set(tries.get() + 1);
            Ok(if tries.get() <= times {
                Punctuality::Late
            } else {
                Punctuality::InTime
            })
        };
        ci.steadily("once", || late(1)).expect("it passes");
        assert!(ci.is_unsteady("once"));

        tries.set(0);
        ci.steadily("never", || late(0)).expect("it passes");
        assert!(!ci.is_unsteady("never"));

        tries.set(0);
        ci.steadily("always", || late(9)).expect_err("it fails");
        assert_eq!(tries.get(), TRIES);

        tries.set(0);
        let failing = || {
            tries.set(tries.get() + 1);
            bail!("wrong")
        };
        ci.steadily("wrong", failing).expect_err("it fails");
        assert_eq!(tries.get(), 1);
    }
}
