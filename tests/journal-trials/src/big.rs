//! Huge threads, and very many threads: the cost of opening, paging, searching, forking, reverting,
//! storing and deleting them.

mod generate;
mod measure;
mod traces;

pub use measure::MeasureArgs;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use crate::verdict::{self, Limit, VerdictRow};
use generate::{GeneratedThreads, ThreadSize};

/// Maximum ratio of stored size to live data.
const RATIO_MAX: f64 = 1.3;

/// Generate huge threads and measure them.
#[derive(Clone, Debug, clap::Args)]
pub struct Big {
    /// Divisor of the full size.
    #[arg(long, default_value_t = 1)]
    part: u64,
    /// Only the many threads, not the huge ones.
    #[arg(long)]
    many: bool,
    /// Folder for the temporary homes: about 6 GB at full size.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

impl Big {
    /// Runs the trial. Returns whether all limits were kept.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        let scratch = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let mut ok = true;
        let huge = [true, false].into_iter().filter(|_| !self.many);
        for compacts in huge {
            let folder = tempfile::tempdir_in(&scratch)?;
            ok &= self.thread(runtime, folder.path(), compacts)?;
        }
        let folder = tempfile::tempdir_in(&scratch)?;
        ok &= self.threads(runtime, folder.path())?;
        Ok(ok)
    }

    /// Gives times some slack at less than the full size.
    fn with_slack(&self, rows: Vec<VerdictRow>) -> Vec<VerdictRow> {
        let slack = self.part > 1;
        let rows = rows.into_iter();
        rows.map(|row| if slack { row.with_slack() } else { row })
            .collect()
    }

    fn thread(&self, runtime: &Runtime, folder: &Path, compacts: bool) -> Result<bool> {
        let home = folder.join("home");
        let size = ThreadSize::of_part(self.part, compacts);
        let start = Instant::now();
        let generated = runtime.block_on(generate::thread(&home, &size))?;
        let mut rows = generated.rows(&home, start)?;
        for what in ["open", "pages", "fork", "revert"] {
            rows.extend(self.with_slack(run_measurement(&home, what, &generated)?));
        }
        rows.extend(runtime.block_on(traces::delete(
            &home,
            generated.thread,
            &generated.marker,
        ))?);
        let kind = if compacts {
            "one that is compacted now and then"
        } else {
            "one that never is"
        };
        Ok(verdict::print(&format!("a huge thread, {kind}"), &rows))
    }

    fn threads(&self, runtime: &Runtime, folder: &Path) -> Result<bool> {
        let home = folder.join("home");
        let start = Instant::now();
        let count = 100_000 / self.part;
        let generated = runtime.block_on(generate::threads(&home, count))?;
        let mut rows = generated.rows(&home, start)?;
        rows.extend(self.with_slack(run_measurement(&home, "lists", &generated)?));
        Ok(verdict::print(&format!("{count} threads"), &rows))
    }
}

impl GeneratedThreads {
    fn rows(&self, home: &Path, start: Instant) -> Result<Vec<VerdictRow>> {
        let is_search = |name: &str| name.starts_with("search.");
        let log = folder_bytes(home, &|name| name.ends_with("-wal"))?;
        // Content of the WAL may be in the file too, so it is checkpointed before the sizes are
        // counted.
        let connection = rusqlite::Connection::open(home.join("journal.sqlite"))?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        drop(connection);
        // The reserve does not grow with the stored data.
        let stored = folder_bytes(home, &|name| !is_search(name) && name != "reserve")?;
        let search = folder_bytes(home, &is_search)?;
        let file = folder_bytes(home, &|name| name == "journal.sqlite")?;
        let mega = |bytes: u64| bytes as f64 / 1e6;
        let live = self.record_bytes + self.blob_bytes;
        Ok(vec![
            VerdictRow::count("seconds to make it", start.elapsed().as_secs()),
            VerdictRow::count("records", self.records),
            VerdictRow::count("images", self.images),
            VerdictRow::count("compactions", self.compactions),
            VerdictRow::new("live data", mega(live), "MB", Limit::None),
            VerdictRow::new(
                "of these, records",
                mega(self.record_bytes),
                "MB",
                Limit::None,
            ),
            VerdictRow::new("the database", mega(file), "MB", Limit::None),
            VerdictRow::new("the logs, at first", mega(log), "MB", Limit::None),
            VerdictRow::new("the search index", mega(search), "MB", Limit::None),
            VerdictRow::new(
                "the store without it, to live data",
                stored as f64 / live as f64,
                "x",
                Limit::AtMost(RATIO_MAX),
            ),
        ])
    }
}

/// Returns the total size of the matching files, in a folder and below it.
fn folder_bytes(folder: &Path, matches: &dyn Fn(&str) -> bool) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        if kind.is_dir() {
            bytes += folder_bytes(&entry.path(), matches)?;
        } else if matches(&entry.file_name().to_string_lossy()) {
            bytes += kind.len();
        }
    }
    Ok(bytes)
}

/// Runs a measurement in a new process, without warm caches.
fn run_measurement(
    home: &Path,
    what: &str,
    generated: &GeneratedThreads,
) -> Result<Vec<VerdictRow>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["look", what, "--home"])
        .arg(home)
        .args(["--thread", &generated.thread.to_string()])
        .args(["--threads", &generated.threads.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "measuring `{what}` failed");
    let text = String::from_utf8(output.stdout)?;
    let rows = text.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().context("what it measured")
}
