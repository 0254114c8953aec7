//! The whole of CI: named steps, in order, each timed; the first failure ends the run.

mod background;
mod plan;
mod steps;

pub use steps::{MUSL, release_build};

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::ci::background::Background;
use crate::ci::plan::{Choice, Step};
use crate::run::Run;
use crate::{parts, processes, repository};

/// What every step is given.
pub struct Ci {
    root: PathBuf,
    cache: Cache,
}

impl Ci {
    /// A program at the top of the repository, building into the cache.
    fn run(&self, program: impl AsRef<std::ffi::OsStr>) -> Run {
        Run::new(program)
            .directory(&self.root)
            .env("CARGO_TARGET_DIR", self.cache.target())
    }

    fn cargo(&self, words: &[&str]) -> Run {
        self.run("cargo").args(words)
    }

    /// The binary under test: the one that users get.
    fn raddle(&self) -> PathBuf {
        self.cache.target().join(steps::MUSL).join("release/raddle")
    }
}

pub fn command(mut arguments: Arguments) -> Result<()> {
    let list = arguments.flag("--list");
    let only = arguments.value("--only")?;
    let from = arguments.value("--from")?;
    arguments.end()?;
    let choice = match (only, from) {
        (None, None) => Choice::All,
        (Some(names), None) => Choice::Only(names.split(',').map(str::to_owned).collect()),
        (None, Some(name)) => Choice::From(name),
        (Some(_), Some(_)) => bail!("--only and --from do not go together"),
    };
    let steps = plan::plan(steps::STEPS, &choice)?;
    if list {
        for step in &steps {
            println!("{:<11}{}", step.name, step.about);
        }
        return Ok(());
    }
    run(&steps)
}

/// Builds the binary that users get, and says where it is.
pub fn release(root: &Path, cache: &Cache) -> Result<PathBuf> {
    let ci = Ci {
        root: root.to_owned(),
        cache: cache.clone(),
    };
    steps::release(&ci)?;
    Ok(ci.raddle())
}

struct Row {
    step: &'static str,
    took: Duration,
    ok: bool,
}

fn run(steps: &[&'static Step]) -> Result<()> {
    let ci = Ci {
        root: repository::root()?,
        cache: Cache::open()?,
    };
    let _lock = ci.cache.lock("ci")?;
    ci.cache.prune()?;

    let mut rows = Vec::new();
    let outcome = run_all(&ci, steps, &mut rows);
    if outcome.is_err() {
        // Parts may still be installing, and must not outlive us.
        processes::kill_descendants(std::process::id());
    }
    print!("\n{}", table(&rows));
    outcome
}

fn run_all(ci: &Ci, steps: &[&'static Step], rows: &mut Vec<Row>) -> Result<()> {
    let mut installing: Option<Background> = None;
    for step in steps {
        if step.needs.contains(&steps::PARTS) {
            finish_parts(installing.take(), rows)?;
        }
        if step.name == steps::PARTS {
            println!("\n=== {} (in the background)", step.name);
            let cache = ci.cache.clone();
            installing = Some(Background::start(move || {
                parts::install(&cache, &[]).map(|_| ())
            }));
            continue;
        }
        println!("\n=== {}", step.name);
        timed(step.name, rows, || (step.run)(ci))?;
    }
    finish_parts(installing, rows)
}

fn timed(step: &'static str, rows: &mut Vec<Row>, run: impl FnOnce() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    let result = run();
    record(step, begun.elapsed(), result, rows)
}

fn finish_parts(installing: Option<Background>, rows: &mut Vec<Row>) -> Result<()> {
    let Some(installing) = installing else {
        return Ok(());
    };
    let (took, result) = installing.join();
    record(steps::PARTS, took, result, rows)
}

fn record(
    step: &'static str,
    took: Duration,
    result: Result<()>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    rows.push(Row {
        step,
        took,
        ok: result.is_ok(),
    });
    result.with_context(|| format!("step `{step}` failed"))
}

fn table(rows: &[Row]) -> String {
    let mut out = format!("{:<11}{:>8}  result\n", "step", "seconds");
    for row in rows {
        let result = if row.ok { "ok" } else { "FAILED" };
        out.push_str(&format!(
            "{:<11}{:>8.1}  {result}\n",
            row.step,
            row.took.as_secs_f64()
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &'static str, ok: bool) -> Row {
        Row {
            step,
            took: Duration::from_millis(1_540),
            ok,
        }
    }

    #[test]
    fn the_table_says_what_failed() {
        assert_eq!(
            table(&[row("format", true), row("clippy", false)]),
            "step        seconds  result\n\
             format          1.5  ok\n\
             clippy          1.5  FAILED\n"
        );
    }

    #[test]
    fn a_failed_step_is_named_and_a_good_one_passes() {
        let mut rows = Vec::new();
        timed("good", &mut rows, || Ok(())).expect("it passes");
        let error = timed("bad", &mut rows, || bail!("no")).expect_err("it fails");
        assert_eq!(format!("{error:#}"), "step `bad` failed: no");
        assert_eq!(
            rows.iter().map(|row| row.ok).collect::<Vec<_>>(),
            [true, false]
        );
    }

    #[test]
    fn a_failure_in_the_background_is_that_of_the_parts() {
        let mut rows = Vec::new();
        let error =
            finish_parts(Some(Background::start(|| bail!("no"))), &mut rows).expect_err("it fails");
        assert_eq!(format!("{error:#}"), "step `parts` failed: no");
        assert!(!rows[0].ok);
    }
}
