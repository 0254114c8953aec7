//! Processes of the program under test. None outlives the run.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process that ends with its owner.
pub struct ChildGuard(pub Child);

impl ChildGuard {
    /// Starts a process with pipes for stdin and stdout, and its own home. Its stderr goes to a
    /// file there.
    pub fn start(raddle: &Path, words: &[&str], home: &Path) -> Result<Self> {
        let log = std::fs::File::create(home.join(format!("{}.stderr", words[0])))?;
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
