//! A server process that is driven over stdio.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::ChildGuard;

/// Timeout for a response, and for the server to exit.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The process, and the messages that it sends.
pub struct AdversaryServer {
    process: ChildGuard,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
    log: PathBuf,
}

impl AdversaryServer {
    /// Starts the server with this command, and initializes the connection.
    pub fn start(command: Command, log: &Path) -> Result<Self> {
        let mut process = ChildGuard::start(command, log)?;
        let stdin = process.0.stdin.take();
        let stdout = process.0.stdout.take().context("a pipe")?;
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut server = Self {
            process,
            stdin,
            messages,
            next_id: 0,
            log: log.to_owned(),
        };
        let client_info = json!({"name": "adversary", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"experimentalApi": true});
        server.call(
            "initialize",
            &json!({"clientInfo": client_info, "capabilities": capabilities}),
        )?;
        server.send(&json!({"method": "initialized"}))?;
        Ok(server)
    }

    /// Sends a request, and returns its id.
    pub fn send_request(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Sends a request, and returns the result. Messages before it are dropped.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send_request(method, params)?;
        let end = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let mut message = self
                .next(end)?
                .with_context(|| format!("no answer to {method}"))?;
            if message["id"] == id && message.get("method").is_none() {
                if message.get("error").is_some() {
                    bail!("{method} was refused: {message}");
                }
                return Ok(message["result"].take());
            }
        }
    }

    pub fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the server was ended")?;
        writeln!(stdin, "{message}").with_context(|| {
            format!(
                "the server reads no more input; its stderr:\n{}",
                stderr(&self.log)
            )
        })
    }

    /// Returns the next message, if it comes in time.
    pub fn next(&mut self, end: Instant) -> Result<Option<Value>> {
        let remaining = end.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(remaining) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the server ended; its stderr:\n{}", stderr(&self.log))
            }
        }
    }

    /// Closes stdin. The server must exit successfully.
    pub fn end(mut self) -> Result<()> {
        drop(self.stdin.take());
        let end = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let remaining = end.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(remaining) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("the server did not end"),
            }
        }
        let status = self.process.0.wait()?;
        let stderr = stderr(&self.log);
        if !status.success() || stderr.contains("panicked") {
            bail!("the server ended with {status}; its stderr:\n{stderr}");
        }
        Ok(())
    }
}

fn stderr(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
