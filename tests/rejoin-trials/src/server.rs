//! The program under test, and its mock model. Neither outlives the run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use support::{ChildGuard, MockModel, SocketServer, StdioClient, app_server};
use tempfile::TempDir;

use crate::client::{ClientOptIns, RejoinClient};
use crate::wire::MessageWire;

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
    mock: MockModel,
    pub home: TempDir,
}

impl RejoinHarness {
    pub fn open(raddle: &Path) -> Result<Self> {
        let raddle = std::path::absolute(raddle)?;
        let home = tempfile::tempdir()?;
        let mock = MockModel::start(&raddle, home.path())?;
        // At full size the model sends nothing for as long as it takes all clients to resume.
        let config = format!(
            "{}stream_idle_timeout_ms = 7200000\ntotal_timeout_ms = 7200000\n",
            mock.config()
        );
        std::fs::write(home.path().join("config.toml"), config)?;
        Ok(Self { raddle, mock, home })
    }

    /// Releases this many paused answers of the model.
    pub fn release(&self, answers: usize) -> Result<()> {
        self.mock.release(answers)
    }

    /// Counts the stored threads of a folder, with those that `thread/list` omits because nobody
    /// has used them.
    pub fn stored_threads(&self, cwd: &Path, archived: bool) -> Result<usize> {
        let mut command = Command::new(&self.raddle);
        command.args(["thread", "list", "--json", "--cwd"]).arg(cwd);
        command.args(archived.then_some("--archived"));
        let output = command.env("RADDLE_HOME", self.home.path()).output()?;
        ensure!(output.status.success(), "{output:?}");
        let listed: Value = serde_json::from_slice(&output.stdout)?;
        Ok(listed["data"].as_array().map_or(0, Vec::len))
    }

    /// Starts a server with a websocket and a unix socket, which resumes the turns of a killed one.
    pub fn serve(&self) -> Result<RejoinServer> {
        let mut command = app_server(&self.raddle, self.home.path());
        command.args(["--listen", "ws://127.0.0.1:0", "--insecure-loopback"]);
        let socket = self.home.path().join("door/socket");
        Ok(RejoinServer::Sockets(SocketServer::start(
            command, &socket,
        )?))
    }

    /// Starts a server on stdio, which ends the turns of a killed one.
    pub fn serve_stdio(&self) -> Result<RejoinServer> {
        let mut command = app_server(&self.raddle, self.home.path());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = ChildGuard::spawn(&mut command)?;
        let pipes = StdioClient::new(&mut process.child)?;
        Ok(RejoinServer::Stdio {
            process,
            pipes: Mutex::new(Some(pipes)),
        })
    }
}

pub enum RejoinServer {
    Sockets(SocketServer),
    Stdio {
        process: ChildGuard,
        /// The pipes, until the client takes them.
        pipes: Mutex<Option<StdioClient>>,
    },
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
        let wire: Box<dyn MessageWire> = match (self, endpoint) {
            (Self::Sockets(server), ServerEndpoint::Websocket) => Box::new(server.websocket()?),
            (Self::Sockets(server), ServerEndpoint::Unix) => Box::new(server.unix()?),
            (Self::Stdio { pipes, .. }, ServerEndpoint::Stdio) => {
                let mut pipes = pipes.lock().unwrap_or_else(PoisonError::into_inner);
                Box::new(pipes.take().context("one client")?)
            }
            _ => bail!("the server does not serve {endpoint:?}"),
        };
        Ok(wire)
    }

    pub fn kill(self) -> Result<()> {
        match self {
            Self::Sockets(mut server) => server.process.kill(),
            Self::Stdio { mut process, .. } => process.kill(),
        }
    }
}
