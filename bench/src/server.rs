//! A server under measurement: start, requests, stop.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::pipe::Pipe;
use crate::socket::Socket;

/// Maximum number of requests in flight.
pub const WINDOW: usize = 64;

/// One of the two measured programs.
pub enum Program {
    Floor(PathBuf),
    Raddle(PathBuf),
}

#[derive(Clone, Copy)]
pub enum Transport {
    Stdio,
    Websocket,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio => "stdio",
            Self::Websocket => "ws",
        })
    }
}

/// Transport of messages, in both directions.
pub trait MessageChannel {
    /// Appends the message to `bytes` as it is sent.
    fn frame(&self, message: &str, bytes: &mut Vec<u8>);
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
    /// Waits for bytes, and passes every complete message to `each`. No complete message stays in
    /// the buffer.
    fn read(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}

/// A server that has answered `initialize`. Dropping this value ends it.
pub struct Running {
    child: Child,
    channel: Box<dyn MessageChannel>,
    last_id: u64,
    _home: TempDir,
}

impl Program {
    pub fn path(&self) -> &Path {
        match self {
            Self::Floor(path) | Self::Raddle(path) => path,
        }
    }

    /// Starts the program in a fresh home, and initialises the connection.
    pub fn start(&self, transport: Transport) -> Result<Running> {
        let home = tempfile::tempdir()?;
        let mut command = Command::new(self.path());
        command.env_clear().env("RADDLE_HOME", home.path());
        match (self, transport) {
            (Self::Floor(_), Transport::Stdio) => command.arg("stdio"),
            (Self::Floor(_), Transport::Websocket) => command.arg("ws"),
            (Self::Raddle(_), Transport::Stdio) => command.arg("app-server"),
            (Self::Raddle(_), Transport::Websocket) => command.args([
                "app-server",
                "--listen",
                "ws://127.0.0.1:0",
                "--insecure-loopback",
            ]),
        };
        match transport {
            Transport::Stdio => command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
            Transport::Websocket => command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped()),
        };
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.path().display()))?;
        let channel: Box<dyn MessageChannel> = match transport {
            Transport::Stdio => Box::new(Pipe::new(&mut child)?),
            Transport::Websocket => Box::new(Socket::connect(&announced(&mut child)?)?),
        };
        let mut running = Running {
            child,
            channel,
            last_id: 0,
            _home: home,
        };
        running.pipeline(
            "initialize",
            r#"{"clientInfo":{"name":"speed","version":"1"}}"#,
            1,
        )?;
        Ok(running)
    }
}

/// Returns the address that the server reports on stderr. Later output is read and discarded.
fn announced(child: &mut Child) -> Result<String> {
    let mut lines = BufReader::new(child.stderr.take().context("no stderr")?).lines();
    for line in &mut lines {
        let line = line?;
        if let Some((_, after)) = line.split_once("listening on ws://") {
            let address = after.split_whitespace().next().unwrap_or_default();
            let address = address.to_owned();
            thread::spawn(move || lines.for_each(drop));
            return Ok(address);
        }
    }
    bail!("the server ended without saying where it listens")
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends this number of requests, with at most [`WINDOW`] in flight, and waits for every
    /// response.
    pub fn pipeline(&mut self, method: &str, params: &str, count: usize) -> Result<()> {
        let (mut sent, mut answered) = (0, 0);
        let mut bytes = Vec::new();
        while answered < count {
            bytes.clear();
            while sent < count.min(answered + WINDOW) {
                self.last_id += 1;
                let id = self.last_id;
                let message = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
                self.channel.frame(&message, &mut bytes);
                sent += 1;
            }
            // A window of requests is smaller than any pipe, so this does not wait for the server.
            self.channel.write(&bytes)?;
            self.channel.read(&mut |message| {
                answered += usize::from(is_result(message)?);
                Ok(())
            })?;
        }
        ensure!(answered == count, "{answered} answers to {count} requests");
        Ok(())
    }

    pub fn resident_bytes(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        let kilobytes = line.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<u64>()? * 1024)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Neither program has state that a kill could damage.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether this is a result instead of a notification. An error fails the measurement: it
/// is quick to send, and must not count as speed.
fn is_result(message: &[u8]) -> Result<bool> {
    let has = |member: &str| memchr::memmem::find(message, member.as_bytes()).is_some();
    if has(r#""result":"#) {
        return Ok(true);
    }
    if has(r#""error":"#) {
        bail!("an error: {}", String::from_utf8_lossy(message));
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_count_as_an_answer() {
        assert!(is_result(br#"{"id":1,"result":{}}"#).expect("an answer"));
        assert!(!is_result(br#"{"method":"warning","params":{}}"#).expect("a notification"));
        assert!(is_result(br#"{"id":2,"error":{"code":-32601,"message":"no"}}"#).is_err());
    }
}
