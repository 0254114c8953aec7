//! The server, as a client drives it over stdio.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::ChildGuard;

/// How long an answer may take, and a server to end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The process, and what it says.
pub struct AdversaryServer {
    process: ChildGuard,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    next_id: u64,
    log: PathBuf,
}

impl AdversaryServer {
    /// Starts it by this command, and introduces itself.
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
        let me = json!({"name": "adversary", "version": env!("CARGO_PKG_VERSION")});
        let able = json!({"experimentalApi": true});
        server.call(
            "initialize",
            &json!({"clientInfo": me, "capabilities": able}),
        )?;
        server.send(&json!({"method": "initialized"}))?;
        Ok(server)
    }

    /// Sends a request, and gives its id.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Asks, and gives the result. What is told before it is passed over.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.ask(method, params)?;
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
                "the server takes no more; its stderr:\n{}",
                stderr(&self.log)
            )
        })
    }

    /// The next message, if one comes in time.
    pub fn next(&mut self, end: Instant) -> Result<Option<Value>> {
        let left = end.saturating_duration_since(Instant::now());
        match self.messages.recv_timeout(left) {
            Ok(heard) => Ok(Some(heard)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the server ended; its stderr:\n{}", stderr(&self.log))
            }
        }
    }

    /// Closes its stdin. It must end well.
    pub fn end(mut self) -> Result<()> {
        drop(self.stdin.take());
        let end = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
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
