//! A server on sockets.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::ChildGuard;
use crate::websocket::Websocket;

/// Timeout of the start of a server.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout of the end of the log, after the server was killed.
const LOG_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of lines of the log in an error.
const LOG_LINES: usize = 30;

/// The process of a server on a unix socket, and on a websocket if its command says so. Dropping it
/// kills the server, and fails the trial if the server has panicked.
pub struct SocketServer {
    /// The process.
    pub process: ChildGuard,
    log: Arc<ServerLog>,
    socket: PathBuf,
}

impl SocketServer {
    /// Starts a server with this unix socket as its last listener, and waits until it listens.
    pub fn start(command: Command, socket: &Path) -> Result<Self> {
        Self::start_within(START_TIMEOUT, command, socket)
    }

    fn start_within(timeout: Duration, mut command: Command, socket: &Path) -> Result<Self> {
        command
            .arg("--listen")
            .arg(format!("unix://{}", socket.display()))
            .stderr(Stdio::piped());
        let mut process = ChildGuard::spawn(&mut command)?;
        let stderr = process.child.stderr.take().context("no pipe from stderr")?;
        let log = Arc::new(ServerLog::default());
        let reader = log.clone();
        // The thread ends with the server.
        std::thread::spawn(move || reader.read(stderr));
        let server = Self {
            process,
            log,
            socket: socket.to_owned(),
        };
        let log = &server.log;
        let content = log.wait_while(timeout, |it| !it.is_listening && !it.has_ended);
        if !content.is_listening {
            let reason = match content.has_ended {
                true => "the server ended",
                false => "the server did not listen in time",
            };
            bail!("{reason}; its stderr:\n{}", content.text());
        }
        drop(content);
        Ok(server)
    }

    /// Returns the address of the websocket.
    pub fn address(&self) -> Result<SocketAddr> {
        let address = self.log.content().address;
        address.context("the server has no websocket")
    }

    /// Connects to the websocket.
    pub fn websocket(&self) -> Result<Websocket> {
        Websocket::tcp(self.address()?)
    }

    /// Connects to the unix socket.
    pub fn unix(&self) -> Result<Websocket> {
        Websocket::unix(&self.socket)
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.process.end();
        let content = self.log.wait_while(LOG_TIMEOUT, |it| !it.has_ended);
        assert!(
            !content.has_panicked || std::thread::panicking(),
            "the server panicked; its stderr:\n{}",
            content.text()
        );
    }
}

/// The log of a server. A thread reads it, so that the server never blocks on the pipe.
#[derive(Default)]
struct ServerLog {
    content: Mutex<LogContent>,
    changed: Condvar,
}

/// The part of a log that is kept.
#[derive(Default)]
struct LogContent {
    /// The newest lines; after a panic, those from the panic on.
    lines: VecDeque<String>,
    /// Address of the websocket.
    address: Option<SocketAddr>,
    /// Whether the server listens on its unix socket, the last of its listeners.
    is_listening: bool,
    has_panicked: bool,
    /// Whether the server has closed its stderr.
    has_ended: bool,
}

impl ServerLog {
    /// Reads the log to its end.
    fn read(&self, stderr: ChildStderr) {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            self.content().add(&String::from_utf8_lossy(&line));
            self.changed.notify_all();
        }
        self.content().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits while the condition holds, until the timeout.
    fn wait_while(
        &self,
        timeout: Duration,
        condition: fn(&LogContent) -> bool,
    ) -> MutexGuard<'_, LogContent> {
        let changed = &self.changed;
        let waited = changed.wait_timeout_while(self.content(), timeout, |it| condition(it));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn content(&self) -> MutexGuard<'_, LogContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogContent {
    fn add(&mut self, line: &str) {
        if let Some((_, address)) = line.split_once("listening on ws://") {
            self.address = address.trim().parse().ok();
        }
        self.is_listening |= line.contains("listening on unix://");
        if line.contains("panicked") && !self.has_panicked {
            self.has_panicked = true;
            self.lines.clear();
        }
        if self.lines.len() == LOG_LINES {
            if self.has_panicked {
                return;
            }
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
    }

    fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Starts a shell in place of a server.
    fn start(timeout: Duration, script: &str) -> Result<SocketServer> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        SocketServer::start_within(timeout, command, Path::new("/no/socket"))
    }

    #[test]
    fn start_waits_until_the_server_listens() {
        let script = "echo listening on ws://127.0.0.1:7 >&2; echo listening on unix://x >&2
            exec sleep 1000";
        let server = start(START_TIMEOUT, script).expect("a server");
        assert_eq!(server.address().expect("an address").port(), 7);
    }

    #[test]
    fn failed_starts_are_reported_with_the_log() {
        let ended = start(START_TIMEOUT, "echo reason >&2").err();
        let ended = ended.expect("an error").to_string();
        assert_eq!(ended, "the server ended; its stderr:\nreason");
        let silent = start(Duration::ZERO, "exec sleep 1000").err();
        let silent = silent.expect("an error").to_string();
        assert_eq!(silent, "the server did not listen in time; its stderr:\n");
    }

    #[test]
    fn panic_of_the_server_fails_the_trial() {
        let script = "echo thread panicked >&2; echo listening on unix://x >&2; exec sleep 1000";
        let server = start(START_TIMEOUT, script).expect("a server");
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(server)));
        let message = dropped.expect_err("a panic");
        let message = message.downcast_ref::<String>().expect("a message");
        assert!(message.contains("thread panicked"), "{message}");
    }

    #[test]
    fn long_logs_keep_their_end_or_their_panic() {
        let mut content = LogContent::default();
        for number in 0..100 {
            content.add(&number.to_string());
        }
        assert_eq!(content.lines.len(), LOG_LINES);
        assert!(content.text().ends_with("\n98\n99"), "{}", content.text());
        content.add("thread panicked");
        for number in 0..100 {
            content.add(&number.to_string());
        }
        assert_eq!(content.lines.len(), LOG_LINES);
        assert!(content.text().starts_with("thread panicked\n0\n1\n"));
    }
}
