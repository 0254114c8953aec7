//! Threads as large as they get, and as many as there can be: what does it cost to open, page, search,
//! fork, go back, keep and delete them?

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

/// Beyond this a size is not what was asked for.
const RATIO_MAX: f64 = 1.3;

/// Make huge threads and measure them.
#[derive(Clone, Debug, clap::Args)]
pub struct Big {
    /// One of so many parts of the full size.
    #[arg(long, default_value_t = 1)]
    part: u64,
    /// Only the many threads, not the huge ones.
    #[arg(long)]
    many: bool,
    /// Where the homes are made, for a short time: about 6 GB at full size.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

impl Big {
    /// Runs, and says whether all limits were kept.
    pub fn run(self, runtime: &Runtime) -> Result<bool> {
        let scratch = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        let mut well = true;
        let huge = [true, false].into_iter().filter(|_| !self.many);
        for compacts in huge {
            let folder = tempfile::tempdir_in(&scratch)?;
            well &= self.thread(runtime, folder.path(), compacts)?;
        }
        let folder = tempfile::tempdir_in(&scratch)?;
        well &= self.threads(runtime, folder.path())?;
        Ok(well)
    }

    /// Times are held to their limits at full size.
    fn eased(&self, rows: Vec<VerdictRow>) -> Vec<VerdictRow> {
        let slack = self.part > 1;
        let rows = rows.into_iter();
        rows.map(|row| if slack { row.with_slack() } else { row })
            .collect()
    }

    fn thread(&self, runtime: &Runtime, folder: &Path, compacts: bool) -> Result<bool> {
        let home = folder.join("home");
        let size = ThreadSize::of_part(self.part, compacts);
        let begun = Instant::now();
        let made = runtime.block_on(generate::thread(&home, &size))?;
        let mut rows = made.rows(&home, begun)?;
        for what in ["open", "pages", "fork", "revert"] {
            rows.extend(self.eased(look(&home, what, &made)?));
        }
        rows.extend(runtime.block_on(traces::delete(&home, made.thread, &made.marker))?);
        let kind = if compacts {
            "one that is condensed now and then"
        } else {
            "one that never is"
        };
        Ok(verdict::print(&format!("a huge thread, {kind}"), &rows))
    }

    fn threads(&self, runtime: &Runtime, folder: &Path) -> Result<bool> {
        let home = folder.join("home");
        let begun = Instant::now();
        let count = 100_000 / self.part;
        let made = runtime.block_on(generate::threads(&home, count))?;
        let mut rows = made.rows(&home, begun)?;
        rows.extend(self.eased(look(&home, "lists", &made)?));
        Ok(verdict::print(&format!("{count} threads"), &rows))
    }
}

impl GeneratedThreads {
    fn rows(&self, home: &Path, begun: Instant) -> Result<Vec<VerdictRow>> {
        let is_search = |name: &str| name.starts_with("search.");
        let log = folder_bytes(home, &|name| name.ends_with("-wal"))?;
        // What is in the log may be in the file too, so it is moved there before anything is counted.
        let connection = rusqlite::Connection::open(home.join("journal.sqlite"))?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        drop(connection);
        // The reserve of the disk does not grow with what is stored.
        let stored = folder_bytes(home, &|name| !is_search(name) && name != "reserve")?;
        let search = folder_bytes(home, &is_search)?;
        let file = folder_bytes(home, &|name| name == "journal.sqlite")?;
        let mega = |bytes: u64| bytes as f64 / 1e6;
        let live = self.record_bytes + self.blob_bytes;
        Ok(vec![
            VerdictRow::count("seconds to make it", begun.elapsed().as_secs()),
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

/// Bytes of all files whose name is wanted, in a folder and below it.
fn folder_bytes(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        if kind.is_dir() {
            bytes += folder_bytes(&entry.path(), wanted)?;
        } else if wanted(&entry.file_name().to_string_lossy()) {
            bytes += kind.len();
        }
    }
    Ok(bytes)
}

/// Measures something in a process that has seen nothing yet.
fn look(home: &Path, what: &str, made: &GeneratedThreads) -> Result<Vec<VerdictRow>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["look", what, "--home"])
        .arg(home)
        .args(["--thread", &made.thread.to_string()])
        .args(["--threads", &made.threads.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "measuring `{what}` failed");
    let text = String::from_utf8(output.stdout)?;
    let rows = text.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().context("what it measured")
}
