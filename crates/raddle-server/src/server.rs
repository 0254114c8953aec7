//! The public interface of the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use raddle_agent::Threads;
use raddle_core::ThreadSource;
use raddle_rpc::{AdminPages, Connection, Transport};
use raddle_sandbox::{KeeperCommand, MeasureFn};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::relay::Peers;
use crate::services::ServerState;
use crate::services::agent_deps::AgentDeps;
use crate::services::config::{ConfigError, Override};
use crate::services::vendors::Vendors;
use crate::{connection, status_pages};

/// Options that are fixed at the server's start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Paths of the server's own files.
    pub paths: Paths,
    /// Configuration from the command line, strongest last.
    pub overrides: Vec<Override>,
    /// The recorded source of new threads. The contract has no member for it in a request.
    pub source: ThreadSource,
    /// Files with tokens or secrets, beside those that the configuration names; no client may read
    /// them.
    pub secrets: Vec<PathBuf>,
    /// Command that starts the keepers of commands.
    pub keeper: KeeperCommand,
    /// Measures how strong a sandbox this machine supports. Without it no command runs in a
    /// sandbox.
    pub measure_sandbox: Option<MeasureFn>,
    /// Whether to read `PATH` from the user's login shell, unless the configuration forbids it.
    pub login_shell: bool,
    /// The other processes of the home; without them, requests for a thread that another one owns
    /// are rejected.
    pub peers: Option<Arc<dyn Peers>>,
    /// Client for the vendors' interfaces outside turns. Without it users cannot sign in, and the
    /// only models are those that the configuration names.
    pub vendors: Option<Arc<dyn Vendors>>,
    /// How long a websocket client may take until its `initialize` is accepted. A parent process
    /// may take longer.
    pub first_message: Duration,
    /// The maximum number of running requests of a connection; more are rejected with a retry hint.
    pub requests_max: usize,
    /// Capacity in bytes for the frames of a connection's running requests. While the next frame
    /// does not fit, the connection is not read. A single request may be larger.
    pub requests_bytes_max: usize,
    /// Timeout for running requests once their connection has ended. When the server stops, a slow
    /// client has as long again to read its last responses.
    pub drain: Duration,
}

impl Options {
    /// Returns options with the default limits.
    pub fn new(paths: Paths) -> Self {
        Self {
            paths,
            overrides: Vec::new(),
            source: ThreadSource::Editor,
            secrets: Vec::new(),
            keeper: KeeperCommand::own(),
            measure_sandbox: None,
            login_shell: false,
            peers: None,
            vendors: None,
            // Limit: time until `initialize` on a socket; beyond it, the websocket closes with
            // 1008.
            first_message: Duration::from_secs(30),
            // Limit: requests of one connection that run at a time; beyond it, the server rejects
            // the request with -32001 and says when to retry.
            requests_max: 256,
            // Limit: requests of one connection that run at a time, in bytes as received (a single
            // request may be larger); beyond it, the server stops reading the connection; after 30
            // s it rejects the request with -32001.
            requests_bytes_max: 64 << 20,
            // Limit: time for running requests after their connection ended, and for the last
            // responses at shutdown; beyond it, the responses are lost and logged; a server on
            // stdio exits non-zero.
            drain: Duration::from_secs(30),
        }
    }
}

/// Paths of the server's own files.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The home that clients receive in the response to `initialize`.
    pub home: PathBuf,
    /// The administrator's configuration; may be missing.
    pub system_config: PathBuf,
    /// The user's configuration; may be missing.
    pub user_config: PathBuf,
    /// The user's skills; may be missing.
    pub skills: PathBuf,
    /// Policy files with rules for agents; may be missing.
    pub rules: Vec<PathBuf>,
    /// The file with the threads, if there is one; `thread/read` returns it.
    pub threads: Option<PathBuf>,
}

impl Paths {
    /// Returns the paths hidden from commands in a sandbox: configuration may contain keys, and
    /// threads are private. Policy files are named one by one, because each may be a link to
    /// another folder.
    pub fn hidden_paths(&self) -> Vec<PathBuf> {
        let threads = self.threads.as_deref().and_then(std::path::Path::parent);
        let config = self.user_config.parent();
        let mut hidden = vec![self.home.clone()];
        hidden.extend(threads.into_iter().chain(config).map(PathBuf::from));
        hidden.push(self.user_config.clone());
        hidden.extend(self.rules.iter().cloned());
        hidden
    }
}

/// A running server. Its connections share all state behind the gate.
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
    connections: JoinSet<()>,
    /// Connections of other processes, which stay until the threads are unloaded.
    relayed: JoinSet<()>,
    draining: watch::Sender<DrainPhase>,
}

/// Progress of the server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DrainPhase {
    Serving,
    /// Accepts no more requests.
    Draining,
    /// All threads are unloaded.
    ThreadsUnloaded,
}

impl Server {
    /// Reads the configuration and opens the server's state. `threads` builds the live threads from
    /// the dependencies it gets.
    pub fn open<F>(options: Options, threads: F) -> Result<Self, ConfigError>
    where
        F: FnOnce(AgentDeps) -> Threads,
    {
        Ok(Self {
            state: Arc::new(ServerState::open(options, threads)?),
            connections: JoinSet::new(),
            relayed: JoinSet::new(),
            draining: watch::Sender::new(DrainPhase::Serving),
        })
    }

    /// Serves a connection beside the others. The returned receiver closes when the connection
    /// ends.
    pub fn serve(&mut self, connection: Connection) -> watch::Receiver<()> {
        while self.connections.try_join_next().is_some() {}
        let (ended, when_ended) = watch::channel(());
        let state = self.state.clone();
        let draining = self.draining.subscribe();
        while self.relayed.try_join_next().is_some() {}
        let tasks = match connection.peer.transport {
            Transport::Relay => &mut self.relayed,
            _ => &mut self.connections,
        };
        tasks.spawn(async move {
            connection::serve(connection, state, draining).await;
            drop(ended);
        });
        when_ended
    }

    /// Returns the pages `/livez` and `/metrics`, for listeners to serve. A check of `/livez`
    /// connects as a client: serve the connections of the receiver like any other, or the check
    /// fails.
    pub fn status_pages(&self) -> (Arc<dyn AdminPages>, mpsc::Receiver<Connection>) {
        let (pages, probes) = status_pages::open(self.state.clone());
        (Arc::new(pages), probes)
    }

    /// Stops reading, waits for running requests, closes every connection and unloads every thread.
    /// The connections of other processes end last, so that these find the threads free.
    pub async fn drain(&mut self) {
        self.draining.send_replace(DrainPhase::Draining);
        while self.connections.join_next().await.is_some() {}
        // An unavailable journal must not keep the server from stopping.
        let drain_timeout = self.state.options.drain;
        if timeout(drain_timeout, self.state.threads.close())
            .await
            .is_err()
        {
            tracing::warn!("timeout while unloading threads: the journal did not respond");
        }
        self.draining.send_replace(DrainPhase::ThreadsUnloaded);
        while self.relayed.join_next().await.is_some() {}
    }

    /// Returns the number of connections that ended by a panic of the server; each is logged.
    pub fn panicked_connections(&self) -> u64 {
        self.state.panicked_connections.load(Ordering::Relaxed)
    }

    /// Returns the number of open connections.
    pub fn connections(&mut self) -> usize {
        while self.connections.try_join_next().is_some() {}
        while self.relayed.try_join_next().is_some() {}
        self.connections.len() + self.relayed.len()
    }
}
