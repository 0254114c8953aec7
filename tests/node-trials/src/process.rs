//! Processes of the program under test. None outlives the run.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process that ends with its owner.
pub struct ChildGuard(pub Child);

impl ChildGuard {
    /// Starts a process with pipes for stdin and stdout. Its stderr goes to a file of this name in
    /// the home.
    pub fn start(raddle: &Path, words: &[&str], home: &Path, log: &str) -> Result<Self> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(home.join(log))?;
        let process = Command::new(raddle)
            .args(words)
            .env("RADDLE_HOME", home)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", raddle.display()))?;
        Ok(Self(process))
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process of `raddle mock`, on its own port.
pub struct MockModel {
    _process: ChildGuard,
    pub address: String,
}

impl MockModel {
    pub fn start(raddle: &Path, home: &Path) -> Result<Self> {
        let words = ["mock", "--listen", "127.0.0.1:0"];
        let mut process = ChildGuard::start(raddle, &words, home, "mock.stderr")?;
        let stdout = process.0.stdout.take().context("a pipe")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim_end().to_owned();
        let is_address = address.starts_with("http://") && address.ends_with("/v1");
        is_address
            .then_some(())
            .with_context(|| format!("the mock said {line:?}, not where it listens"))?;
        Ok(Self {
            _process: process,
            address,
        })
    }
}
