//! The program under test, and its mock model. Neither outlives the run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::client::{ClientOptIns, RejoinClient};
use crate::wire::{MessageWire, Pipes, unix, websocket};

/// Endpoint of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEndpoint {
    Websocket,
    Unix,
    Stdio,
}

/// A home with a mock model, in which servers run one after the other.
pub struct RejoinHarness {
    raddle: PathBuf,
    pub home: TempDir,
    mock: Child,
    /// Address of the mock model.
    mock_at: String,
}

impl RejoinHarness {
    pub fn open(raddle: &Path) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mut mock = Command::new(raddle)
            .args(["mock", "--listen", "127.0.0.1:0"])
            .env("RADDLE_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", raddle.display()))?;
        let mut line = String::new();
        let stdout = mock.stdout.take().context("a pipe")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line.trim_end();
        // At full size the model sends nothing for as long as it takes all clients to resume.
        let config = format!(
            "model = \"mock\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nbase_url = \"{url}\"\n\
             stream_idle_timeout_ms = 7200000\ntotal_timeout_ms = 7200000\n"
        );
        std::fs::write(home.path().join("config.toml"), config)?;
        let host = url.trim_start_matches("http://").trim_end_matches("/v1");
        Ok(Self {
            raddle: raddle.to_owned(),
            mock_at: host.to_owned(),
            home,
            mock,
        })
    }

    /// Releases this many paused answers of the model.
    pub fn release(&self, answers: usize) -> Result<()> {
        let mut stream = TcpStream::connect(&self.mock_at)?;
        let host = &self.mock_at;
        write!(
            stream,
            "POST /release?n={answers} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 2"), "not released: {answer}");
        Ok(())
    }

    /// Starts a server with a websocket and a unix socket, which resumes the turns of a killed one.
    pub fn serve(&self) -> Result<RejoinServer> {
        let socket = self.home.path().join("door/socket");
        let mut child = self
            .command()
            .args(["--listen", "ws://127.0.0.1:0", "--insecure-loopback"])
            .arg("--listen")
            .arg(format!("unix://{}", socket.display()))
            .stderr(Stdio::piped())
            .spawn()?;
        let mut log = BufReader::new(child.stderr.take().context("a pipe")?).lines();
        let mut server = RejoinServer {
            child,
            address: None,
            socket,
            pipes: Mutex::new(None),
        };
        let mut is_listening = (false, false);
        let mut output = String::new();
        while is_listening != (true, true) {
            let line = log.next();
            let line = line.with_context(|| format!("the server ended, and said:{output}"))??;
            output = format!("{output}\n{line}");
            if let Some((_, address)) = line.split_once("listening on ws://") {
                server.address = Some(address.trim().parse()?);
                is_listening.0 = true;
            }
            is_listening.1 |= line.contains("listening on unix://");
        }
        // Drains the log, so that the server never blocks on the pipe.
        std::thread::spawn(move || log.for_each(drop));
        Ok(server)
    }

    /// Starts a server on stdio, which ends the turns of a killed one.
    pub fn serve_stdio(&self) -> Result<RejoinServer> {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().context("a pipe")?;
        let stdout = child.stdout.take().context("a pipe")?;
        Ok(RejoinServer {
            child,
            address: None,
            socket: PathBuf::new(),
            pipes: Mutex::new(Some(Pipes::of(stdin, stdout))),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.raddle);
        command
            .arg("app-server")
            .env("RADDLE_HOME", self.home.path())
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }
}

impl Drop for RejoinHarness {
    fn drop(&mut self) {
        let _ = self.mock.kill();
        let _ = self.mock.wait();
    }
}

pub struct RejoinServer {
    child: Child,
    address: Option<SocketAddr>,
    socket: PathBuf,
    /// Stdio pipes, until the client takes them.
    pipes: Mutex<Option<Pipes>>,
}

impl RejoinServer {
    /// Connects and initializes a client. On stdio there is only one.
    pub fn client(&self, endpoint: ServerEndpoint, opt_ins: ClientOptIns) -> Result<RejoinClient> {
        RejoinClient::initialized(self.wire(endpoint)?, opt_ins)
    }

    /// Connects a client with a name.
    pub fn client_named(&self, endpoint: ServerEndpoint, name: &str) -> Result<RejoinClient> {
        RejoinClient::with_name(self.wire(endpoint)?, ClientOptIns::Numbers, name)
    }

    fn wire(&self, endpoint: ServerEndpoint) -> Result<Box<dyn MessageWire>> {
        match endpoint {
            ServerEndpoint::Websocket => websocket(self.address.context("a websocket door")?),
            ServerEndpoint::Unix => unix(&self.socket),
            ServerEndpoint::Stdio => {
                let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(Box::new(pipes.take().context("one client")?))
            }
        }
    }

    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for RejoinServer {
    fn drop(&mut self) {
        // Killing an ended process fails, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
