//! The program under test, its mock model, and their cost. Neither outlives the run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::client::CrowdClient;
use crate::wire::TestWire;

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

/// A process that is killed when this is dropped.
struct ServerGuard(Child);

impl ServerGuard {
    /// Waits until the process listens on its last endpoint, a unix socket. Returns its log until
    /// then.
    fn ready(&mut self) -> Result<String> {
        let mut log = BufReader::new(self.0.stderr.take().context("a pipe")?).lines();
        let mut output = String::new();
        while !output.contains("listening on unix://") {
            let line = log.next();
            let line = line.with_context(|| format!("the server ended, and said:{output}"))??;
            output = format!("{output}\n{line}");
        }
        // Drains the log, so that the process never blocks on the pipe.
        std::thread::spawn(move || log.for_each(drop));
        Ok(output)
    }
}

impl Drop for ServerGuard {
    fn drop(&mut self) {
        // Killing an ended process fails, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server with all endpoints, and a mock model behind it.
pub struct CrowdServer {
    process: ServerGuard,
    _mock: ServerGuard,
    home: TempDir,
    pub address: SocketAddr,
    socket: PathBuf,
    stdio: Option<(ChildStdin, ChildStdout)>,
    raddle: PathBuf,
    other_process: OnceLock<(ServerGuard, PathBuf)>,
}

impl CrowdServer {
    pub fn start(raddle: &Path) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mock = Command::new(raddle)
            .args(["mock", "--listen", "127.0.0.1:0"])
            .env("RADDLE_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", raddle.display()))?;
        let mut mock = ServerGuard(mock);
        let mut url = String::new();
        BufReader::new(mock.0.stdout.take().context("a pipe")?).read_line(&mut url)?;
        let url = url.trim_end();
        let config = format!(
            "model = \"mock\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nbase_url = \"{url}\"\n"
        );
        fs::write(home.path().join("config.toml"), config)?;

        let socket = home.path().join("door/socket");
        let process = Command::new(raddle)
            .args(["app-server", "--listen", "stdio://"])
            .args(["--listen", "ws://127.0.0.1:0", "--insecure-loopback"])
            .arg("--listen")
            .arg(format!("unix://{}", socket.display()))
            .env("RADDLE_HOME", home.path())
            // Allows counting its descriptors.
            .env("RADDLE_DUMPABLE", "1")
            // Makes glibc return large blocks as soon as they are free, so that the measured memory
            // is what the server holds.
            .env("MALLOC_MMAP_THRESHOLD_", "131072")
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut process = ServerGuard(process);
        let output = process.ready()?;
        let address = output
            .lines()
            .find_map(|line| line.split_once("listening on ws://"))
            .map(|(_, at)| at.trim().parse())
            .transpose()?;
        let stdin = process.0.stdin.take().context("a pipe")?;
        let stdout = process.0.stdout.take().context("a pipe")?;
        Ok(Self {
            address: address.context("a websocket door")?,
            stdio: Some((stdin, stdout)),
            process,
            _mock: mock,
            home,
            socket,
            raddle: raddle.to_owned(),
            other_process: OnceLock::new(),
        })
    }

    /// Connects and initializes a client.
    pub fn client(&self, endpoint: ServerEndpoint) -> Result<CrowdClient> {
        CrowdClient::initialized(match endpoint {
            ServerEndpoint::Tcp => TestWire::tcp(self.address)?,
            ServerEndpoint::Unix => TestWire::unix(&self.socket)?,
            ServerEndpoint::OtherProcess => TestWire::unix(self.other_process_socket()?)?,
        })
    }

    /// Returns the socket of another process with the same home, which is started on first use.
    fn other_process_socket(&self) -> Result<&Path> {
        if let Some((_, socket)) = self.other_process.get() {
            return Ok(socket);
        }
        let socket = self.home.path().join("beside/socket");
        let process = Command::new(&self.raddle)
            .args(["app-server", "--listen"])
            .arg(format!("unix://{}", socket.display()))
            .env("RADDLE_HOME", self.home.path())
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut process = ServerGuard(process);
        process.ready()?;
        let (_, socket) = self.other_process.get_or_init(|| (process, socket));
        Ok(socket)
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
            .join(self.process.0.id().to_string())
            .join(name)
    }
}
