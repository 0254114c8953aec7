//! A server on sockets.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::process::ChildGuard;
use crate::websocket::Websocket;

/// The process of a server on a unix socket, and on a websocket if its command says so.
pub struct SocketServer {
    /// The process.
    pub process: ChildGuard,
    address: Option<SocketAddr>,
    socket: PathBuf,
}

impl SocketServer {
    /// Starts a server with this unix socket as its last listener, and waits until it listens.
    pub fn start(mut command: Command, socket: &Path) -> Result<Self> {
        command
            .arg("--listen")
            .arg(format!("unix://{}", socket.display()))
            .stderr(Stdio::piped());
        let mut process = ChildGuard::spawn(&mut command)?;
        let stderr = process.child.stderr.take().context("no pipe from stderr")?;
        let mut log = BufReader::new(stderr).lines();
        let mut output = String::new();
        let mut address = None;
        while !output.contains("listening on unix://") {
            let line = log.next();
            let line = line.with_context(|| format!("the server ended, and said:{output}"))??;
            if let Some((_, at)) = line.split_once("listening on ws://") {
                address = Some(at.trim().parse::<SocketAddr>()?);
            }
            output = format!("{output}\n{line}");
        }
        // Drains the log, so that the server never blocks on the pipe.
        std::thread::spawn(move || log.for_each(drop));
        Ok(Self {
            process,
            address,
            socket: socket.to_owned(),
        })
    }

    /// Returns the address of the websocket.
    pub fn address(&self) -> Result<SocketAddr> {
        self.address.context("the server has no websocket")
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
