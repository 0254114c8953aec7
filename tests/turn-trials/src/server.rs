//! The server on stdio, driven by a client.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::ChildGuard;

/// Maximum time for the server to exit after the last turn has ended.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// A message with its arrival time.
pub type TimedMessage = (Instant, Value);

/// The server process and its messages.
pub struct TurnsServer {
    process: ChildGuard,
    stdin: Option<ChildStdin>,
    messages: Receiver<TimedMessage>,
    next_id: u64,
    log: PathBuf,
    /// Responses that were not consumed yet.
    pub answers: HashMap<u64, Value>,
}

impl TurnsServer {
    /// Starts the server, and initialises the connection.
    pub fn start(raddle: &Path, home: &Path) -> Result<Self> {
        let mut process = ChildGuard::start(raddle, &["app-server"], home)?;
        let stdin = process.0.stdin.take();
        let stdout = process.0.stdout.take().context("a pipe")?;
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send((Instant::now(), message)).is_err() {
                    return;
                }
            }
        });
        let mut server = Self {
            process,
            stdin,
            messages,
            next_id: 0,
            log: home.join("app-server.stderr"),
            answers: HashMap::new(),
        };
        let me = json!({"name": "turn-trials", "version": env!("CARGO_PKG_VERSION")});
        server.send_request("initialize", json!({"clientInfo": me}))?;
        Ok(server)
    }

    /// Sends a request, and returns its id.
    pub fn send_request(&mut self, method: &str, params: Value) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({"id": id, "method": method, "params": params});
        let stdin = self.stdin.as_mut().context("the server was ended")?;
        writeln!(stdin, "{request}").context("the server takes no more")?;
        Ok(id)
    }

    /// Returns the next message, if one arrives in time.
    pub fn next(&mut self, end: Instant) -> Result<Option<TimedMessage>> {
        let remaining = end.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(remaining) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the server ended; its stderr:\n{}", self.stderr())
            }
        }
    }

    /// Closes stdin, and returns the remaining messages. The server must exit successfully.
    pub fn end(&mut self) -> Result<Vec<TimedMessage>> {
        drop(self.stdin.take());
        let end = Instant::now() + END_TIMEOUT;
        let mut last = Vec::new();
        loop {
            let remaining = end.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(remaining) {
                Ok(message) => last.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("the server did not end"),
            }
        }
        let status = self.process.0.wait()?;
        let stderr = self.stderr();
        if !status.success() || stderr.contains("panicked") {
            bail!("the server ended with {status}; its stderr:\n{stderr}");
        }
        Ok(last)
    }

    fn stderr(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}
