//! Fuzz targets on the stable toolchain: libFuzzer, with the compiler's own coverage pass.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache::{Cache, remove_folder};
use crate::failure_text::FailureSearch;
use crate::install::{LOG_LINES_SHOWN, end_of};
use crate::run::{Run, figure};
use crate::workspace;

/// Flags that `cargo fuzz` would pass to a nightly compiler, for the stable one.
const FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 --cfg fuzzing";

/// Explicit target even though it is the host: otherwise cargo would apply the flags above to build
/// scripts, which cannot link with them.
const TARGET: &str = "x86_64-unknown-linux-gnu";

const PACKAGE: &str = "fuzz";

const MEMORY_MB_MAX: u32 = 2048;

/// Seeds of each target, including earlier findings that were fixed.
const SEEDS: &str = "fuzz/seeds";

/// Replays the seeds of every target, built like any other program.
pub fn replay(root: &Path, cache: &Cache) -> Result<()> {
    let targets = read_targets(root)?;
    workspace::build(root, cache)?;
    for target in &targets {
        workspace::built(root, cache, target)
            .arg(seeds(root, target)?)
            .minutes(5)
            .go()
            .with_context(|| format!("fuzz target `{target}`"))?;
    }
    Ok(())
}

/// Builds every target for fuzzing and runs each for this long, as many at once as there are cores.
pub fn run(root: &Path, cache: &Cache, each: Duration) -> Result<()> {
    let targets = read_targets(root)?;
    Run::new("cargo")
        .directory(root)
        .args(["build", "--profile", "fuzz", "--locked", "--bins"])
        .args(["--package", PACKAGE, "--target", TARGET])
        .env("CARGO_TARGET_DIR", cache.fuzz_target())
        .env("RUSTFLAGS", FLAGS)
        .go()?;

    let programs = cache.fuzz_target().join(TARGET).join("fuzz");
    let cores = thread::available_parallelism()?.get();
    for some in targets.chunks(cores) {
        let results: Vec<Result<u64>> = thread::scope(|scope| {
            let programs = &programs;
            let running: Vec<_> = some
                .iter()
                .map(|target| {
                    scope.spawn(move || run_one(root, cache, &programs.join(target), target, each))
                })
                .collect();
            running
                .into_iter()
                .map(|it| it.join().unwrap_or_else(|_| bail!("its thread panicked")))
                .collect()
        });
        for (target, executions) in some.iter().zip(results) {
            let executions = executions.with_context(|| format!("fuzz target `{target}`"))?;
            figure(&format!(
                "`{target}`: {executions} executions in {} s, no finding",
                each.as_secs()
            ));
        }
    }
    Ok(())
}

fn run_one(
    root: &Path,
    cache: &Cache,
    program: &Path,
    target: &str,
    each: Duration,
) -> Result<u64> {
    let seeds = seeds(root, target)?;
    // LibFuzzer writes interesting inputs into the first directory; the seeds are only read.
    let corpus = Corpus::new(target)?;
    let findings = cache.fuzz_findings().join(target);
    fs::create_dir_all(&findings)?;
    let log = findings.join("log");
    let result = Run::new(program)
        .directory(root)
        .log_to(&File::create(&log)?)?
        // For targets that check time limits. Replaying their seeds does not.
        .env("RADDLE_FUZZ_MS", "50")
        .arg(format!("-max_total_time={}", each.as_secs()))
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .arg(&corpus.0)
        .arg(&seeds)
        .minutes(each.as_secs() / 60 + 5)
        .go();
    let output = fs::read(&log)?;
    let output = String::from_utf8_lossy(&output);
    println!("{target}:\n{}", end_of(&output, LOG_LINES_SHOWN));
    let result = result.map_err(|error| match FailureSearch::find_in(&output) {
        Some(it) => error.context(it),
        None => error,
    });
    result.with_context(|| {
        format!(
            "fuzz target `{target}` failed; the input is in {}, run `{} INPUT` to see it again",
            findings.display(),
            program.display()
        )
    })?;
    executions(&output).with_context(|| format!("{} counts no executions", log.display()))
}

/// Returns libFuzzer's own count, from the last line of its statistics that has one.
fn executions(log: &str) -> Option<u64> {
    let lines = log.lines().rev();
    let mut counts = lines.filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    counts.next()?.trim().parse().ok()
}

fn seeds(root: &Path, target: &str) -> Result<PathBuf> {
    let seeds = root.join(SEEDS).join(target);
    if !seeds.is_dir() {
        bail!("fuzz target `{target}` has no seeds; put a few inputs into {SEEDS}/{target}/");
    }
    Ok(seeds)
}

fn read_targets(root: &Path) -> Result<Vec<String>> {
    let manifest = root.join("fuzz/Cargo.toml");
    let text = fs::read_to_string(&manifest)
        .with_context(|| format!("cannot read {}", manifest.display()))?;
    targets(&text)
}

/// A temporary corpus for one run.
struct Corpus(PathBuf);

impl Corpus {
    fn new(target: &str) -> Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("raddle-fuzz-{target}-{}", std::process::id()));
        remove_folder(&folder)?;
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Corpus {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the names of the `[[bin]]` entries; fails if there are none.
fn targets(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse().context("fuzz/Cargo.toml")?;
    let names: Vec<String> = manifest
        .get("bin")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|bin| Some(bin.get("name")?.as_str()?.to_owned()))
        .collect();
    if names.is_empty() {
        bail!("fuzz/Cargo.toml lists no [[bin]]: there is nothing to fuzz");
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_off_the_statistics() {
        let log = "#9 DONE\nstat::number_of_executed_units: 1234\nstat::average_exec_per_sec: 2\n";
        assert_eq!(executions(log), Some(1234));
        assert_eq!(executions("killed"), None);
    }

    #[test]
    fn targets_are_the_bins_of_the_manifest() {
        let names = targets("[[bin]]\nname = \"envelope\"\n[[bin]]\nname = \"lines\"\n");
        assert_eq!(names.expect("two"), ["envelope", "lines"]);
        assert!(targets("[package]\nname = \"fuzz\"\n").is_err());
    }
}
