//! Processes of the program under test. None outlives the run.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process that is killed when this is dropped.
pub struct ChildGuard(pub Child);

impl ChildGuard {
    /// Starts a process with pipes for stdin and stdout. Its stderr goes to this file.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self(process))
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // An exited process cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
