//! The program under test, its mock model, and their cost. Neither outlives the run.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use support::{MockModel, SocketServer, app_server};
use tempfile::TempDir;

use crate::client::CrowdClient;

/// Linux's clock ticks per second, on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// Endpoint of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEndpoint {
    Tcp,
    Unix,
    /// Another process with the same home, which forwards its requests.
    OtherProcess,
}

/// A server with all endpoints, and a mock model behind it.
pub struct CrowdServer {
    server: SocketServer,
    stdio: Option<(ChildStdin, ChildStdout)>,
    other_process: OnceLock<SocketServer>,
    _mock: MockModel,
    raddle: PathBuf,
    home: TempDir,
}

impl CrowdServer {
    pub fn start(raddle: &Path) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mock = MockModel::start(raddle, home.path())?;
        fs::write(home.path().join("config.toml"), mock.config())?;
        let mut command = app_server(raddle, home.path());
        command
            .args(["--listen", "stdio://"])
            .args(["--listen", "ws://127.0.0.1:0", "--insecure-loopback"])
            // Allows counting its descriptors.
            .env("RADDLE_DUMPABLE", "1")
            // Makes glibc return large blocks as soon as they are free, so that the measured memory
            // is what the server holds.
            .env("MALLOC_MMAP_THRESHOLD_", "131072")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut server = SocketServer::start(command, &home.path().join("door/socket"))?;
        let child = &mut server.process.child;
        let stdin = child.stdin.take().context("a pipe")?;
        let stdout = child.stdout.take().context("a pipe")?;
        Ok(Self {
            server,
            stdio: Some((stdin, stdout)),
            other_process: OnceLock::new(),
            _mock: mock,
            raddle: raddle.to_owned(),
            home,
        })
    }

    /// Returns the address of its websocket.
    pub fn address(&self) -> Result<SocketAddr> {
        self.server.address()
    }

    /// Connects and initializes a client.
    pub fn client(&self, endpoint: ServerEndpoint) -> Result<CrowdClient> {
        CrowdClient::initialized(match endpoint {
            ServerEndpoint::Tcp => self.server.websocket()?,
            ServerEndpoint::Unix => self.server.unix()?,
            ServerEndpoint::OtherProcess => self.other_process()?.unix()?,
        })
    }

    /// Returns another process with the same home, which is started on first use.
    fn other_process(&self) -> Result<&SocketServer> {
        if let Some(server) = self.other_process.get() {
            return Ok(server);
        }
        let home = self.home.path();
        let command = app_server(&self.raddle, home);
        let server = SocketServer::start(command, &home.join("beside/socket"))?;
        Ok(self.other_process.get_or_init(|| server))
    }

    /// Returns the stdio pipes of the server. When they close, it exits.
    pub fn take_stdio(&mut self) -> Result<(ChildStdin, ChildStdout)> {
        self.stdio.take().context("one parent")
    }

    /// Returns the resident memory of the server, in bytes.
    pub fn memory(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    /// Returns the peak memory since the last reset, in bytes.
    pub fn memory_peak(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    pub fn reset_peak(&self) -> Result<()> {
        Ok(fs::write(self.proc("clear_refs"), "5")?)
    }

    /// Returns the CPU time of the server so far, in seconds.
    pub fn busy_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(self.proc("stat"))?;
        // After the name, which may contain anything, comes the state, then numbers; user and
        // system time are fields 14 and 15.
        let (_, numbers) = stat.rsplit_once(')').context("a name")?;
        let ticks = numbers.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<_, _>>()?;
        Ok(ticks as f64 / TICKS_PER_SECOND)
    }

    pub fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(self.proc("fd"))?.count())
    }

    /// Returns the size of the journal's WAL, in bytes.
    pub fn log_bytes(&self) -> u64 {
        let log = self.home.path().join("threads/journal.sqlite-wal");
        fs::metadata(log).map_or(0, |it| it.len())
    }

    fn status(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(self.proc("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.context("it is there")?.parse::<u64>()? << 10)
    }

    fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc")
            .join(self.server.process.child.id().to_string())
            .join(name)
    }
}
