//! The program under test, the model behind it, and what they cost. Neither outlives the run.

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

/// What Linux counts in, whatever the machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// A way to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEndpoint {
    Tcp,
    Unix,
    /// Another process of the same home, which passes on what it is asked.
    OtherProcess,
}

/// A process that ends with its owner.
struct ServerGuard(Child);

impl ServerGuard {
    /// Waits until it listens on its last door, a unix socket; what it said until then.
    fn ready(&mut self) -> Result<String> {
        let mut log = BufReader::new(self.0.stderr.take().context("a pipe")?).lines();
        let mut said = String::new();
        while !said.contains("listening on unix://") {
            let line = log.next();
            let line = line.with_context(|| format!("the server ended, and said:{said}"))??;
            said = format!("{said}\n{line}");
        }
        // So that it never waits for someone to read its log.
        std::thread::spawn(move || log.for_each(drop));
        Ok(said)
    }
}

impl Drop for ServerGuard {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server with every door there is, and a model behind it.
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
            // So that its descriptors can be counted.
            .env("RADDLE_DUMPABLE", "1")
            // glibc gives large blocks back as soon as they are free: what is measured is what the server holds.
            .env("MALLOC_MMAP_THRESHOLD_", "131072")
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut process = ServerGuard(process);
        let said = process.ready()?;
        let address = said
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

    /// A client that has introduced itself.
    pub fn client(&self, door: ServerEndpoint) -> Result<CrowdClient> {
        CrowdClient::introduced(match door {
            ServerEndpoint::Tcp => TestWire::tcp(self.address)?,
            ServerEndpoint::Unix => TestWire::unix(&self.socket)?,
            ServerEndpoint::OtherProcess => TestWire::unix(self.beside()?)?,
        })
    }

    /// The socket of another process of the same home, which is started when someone comes to it.
    fn beside(&self) -> Result<&Path> {
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

    /// The pipes of whoever started it. Without them it ends.
    pub fn take_stdio(&mut self) -> Result<(ChildStdin, ChildStdout)> {
        self.stdio.take().context("one parent")
    }

    /// Bytes of memory that the server holds.
    pub fn memory(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    /// The most bytes that it held since the peak was forgotten.
    pub fn memory_peak(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    pub fn forget_peak(&self) -> Result<()> {
        Ok(fs::write(self.proc("clear_refs"), "5")?)
    }

    /// How long the server has used a processor so far, in seconds.
    pub fn busy_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(self.proc("stat"))?;
        // After the name, which may hold anything: the state, then numbers, of which these are the 14th and 15th.
        let (_, numbers) = stat.rsplit_once(')').context("a name")?;
        let ticks = numbers.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<_, _>>()?;
        Ok(ticks as f64 / TICKS_PER_SECOND)
    }

    pub fn descriptors(&self) -> Result<usize> {
        Ok(fs::read_dir(self.proc("fd"))?.count())
    }

    /// Bytes of the journal's log.
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
