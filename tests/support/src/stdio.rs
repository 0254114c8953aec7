//! A server on stdio, and its client.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::{ChildGuard, append_to};

/// Timeout of a response, and of the exit of the server.
const STDIO_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of lines of the log in an error.
const LOG_LINES: usize = 30;

/// A line with its arrival time.
pub type TimedLine = (Instant, Vec<u8>);

/// A message with its arrival time.
pub type TimedMessage = (Instant, Value);

/// The client on the pipes of a child. A thread reads its stdout, so the child never waits for this
/// client.
pub struct StdioClient {
    stdin: Option<ChildStdin>,
    lines: Receiver<TimedLine>,
}

impl StdioClient {
    /// Takes the pipes of a child.
    pub fn new(child: &mut Child) -> Result<Self> {
        let stdin = child.stdin.take().context("no pipe to stdin")?;
        let stdout = child.stdout.take().context("no pipe from stdout")?;
        let (sender, lines) = mpsc::channel();
        // The thread ends with the child.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            stdin: Some(stdin),
            lines,
        })
    }

    /// Sends a line.
    pub fn send(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("stdin was closed")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    /// Returns the next line, if one arrives in time.
    pub fn receive(&mut self, end: Instant) -> Result<TimedLine, RecvTimeoutError> {
        let remaining = end.saturating_duration_since(Instant::now());
        self.lines.recv_timeout(remaining)
    }

    /// Closes stdin. A server whose only client is on stdio ends then.
    pub fn close(&mut self) {
        drop(self.stdin.take());
    }
}

/// The process of a server on stdio, and its client.
pub struct StdioServer {
    process: ChildGuard,
    client: StdioClient,
    last_id: u64,
    log: PathBuf,
}

impl StdioServer {
    /// Starts the server with pipes for stdin and stdout. Its stderr is appended to the log.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(append_to(log)?);
        let mut process = ChildGuard::spawn(&mut command)?;
        let client = StdioClient::new(&mut process.child)?;
        Ok(Self {
            process,
            client,
            last_id: 0,
            log: log.to_owned(),
        })
    }

    /// Sends a request, and returns its id.
    pub fn send_request(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Sends any message.
    pub fn send(&mut self, message: &Value) -> Result<()> {
        let sent = self.client.send(&message.to_string());
        sent.with_context(|| {
            format!(
                "the server reads no more input; its stderr:\n{}",
                self.log_end()
            )
        })
    }

    /// Sends a request, and returns the result. Messages before it are dropped.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send_request(method, params)?;
        let end = Instant::now() + STDIO_TIMEOUT;
        loop {
            let message = self.next(end)?;
            let mut message = message.with_context(|| format!("no answer to {method}"))?;
            if message["id"] == id && message.get("method").is_none() {
                if message.get("error").is_some() {
                    bail!("{method} was refused: {message}");
                }
                return Ok(message["result"].take());
            }
        }
    }

    /// Returns the next message, if one arrives in time.
    pub fn next(&mut self, end: Instant) -> Result<Option<Value>> {
        Ok(self.next_timed(end)?.map(|(_, message)| message))
    }

    /// Returns the next message and its arrival time, if one arrives in time. An invalid message
    /// is a string.
    pub fn next_timed(&mut self, end: Instant) -> Result<Option<TimedMessage>> {
        match self.client.receive(end) {
            Ok(line) => Ok(Some(parse(line))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the server ended; its stderr:\n{}", self.log_end())
            }
        }
    }

    /// Returns the next message that has already arrived, without waiting for one.
    pub fn next_ready(&mut self) -> Option<Value> {
        let line = self.client.lines.try_recv().ok()?;
        Some(parse(line).1)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Kills the server, as the system does when memory is short.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Closes stdin, and returns the remaining messages. The server must exit successfully, and
    /// must not have panicked.
    pub fn end(&mut self) -> Result<Vec<TimedMessage>> {
        self.client.close();
        let end = Instant::now() + STDIO_TIMEOUT;
        let mut last = Vec::new();
        loop {
            match self.client.receive(end) {
                Ok(line) => last.push(parse(line)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("the server did not end"),
            }
        }
        let status = self.process.child.wait()?;
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        if !status.success() || log.contains("panicked") {
            bail!(
                "the server ended with {status}; its stderr:\n{}",
                self.log_end()
            );
        }
        Ok(last)
    }

    fn log_end(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

fn parse((when, line): TimedLine) -> TimedMessage {
    let message = serde_json::from_slice(&line);
    let message =
        message.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&line).into_owned()));
    (when, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a shell that answers every line.
    fn start(script: &str) -> (StdioServer, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let server = StdioServer::start(command, &folder.path().join("log"));
        (server.expect("a process"), folder)
    }

    #[test]
    fn responses_are_found_among_other_messages() {
        let script = r#"read -r _; echo '{"method":"a"}'; echo 'b'; echo '{"id":1,"result":7}'
            read -r _; echo '{"id":2,"error":{}}'; while read -r _; do :; done; echo '{"last":1}'"#;
        let (mut server, _folder) = start(script);
        assert_eq!(server.call("x", &json!({})).expect("a result"), 7);
        assert!(server.call("y", &json!({})).is_err());
        assert_eq!(server.next_ready(), None);
        let last = server.end().expect("a successful exit");
        let last: Vec<Value> = last.into_iter().map(|(_, it)| it).collect();
        assert_eq!(last, [json!({"last": 1})]);
    }

    #[test]
    fn failed_exits_are_reported_with_the_log() {
        for script in ["echo reason >&2; exit 1", "echo reason: panicked >&2"] {
            let (mut server, _folder) = start(script);
            let error = server.end().expect_err("a failed exit");
            assert!(error.to_string().contains("reason"), "{error}");
        }
    }
}
