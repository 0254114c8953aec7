//! Background steps, which run concurrently at low priority with their own log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::run;

/// A running background step, with its own clock.
pub struct Background {
    pub step: &'static str,
    log: PathBuf,
    thread: JoinHandle<(Duration, Result<()>)>,
}

impl Background {
    /// Starts `work` on its own thread; the programs it starts write to a log in `folder`.
    pub fn start(
        step: &'static str,
        folder: &Path,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let log = folder.join(format!("{step}.log"));
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let start_time = Instant::now();
        let thread = thread::spawn(move || {
            run::in_background(file);
            let result = work();
            (start_time.elapsed(), result)
        });
        Ok(Self { step, log, thread })
    }

    /// Waits for the step and prints its log. Returns the duration of the work, without the wait.
    pub fn join(self) -> (Duration, Result<()>) {
        let result = self.thread.join().unwrap_or_else(|_| {
            (
                Duration::ZERO,
                Err(anyhow!("the step in the background panicked")),
            )
        });
        println!("\n=== {} (from the background)", self.step);
        print!("{}", fs::read_to_string(&self.log).unwrap_or_default());
        result
    }
}
