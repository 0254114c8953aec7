//! The server as its owner sees it.

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

/// What the server is told once, at its start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where things live.
    pub paths: Paths,
    /// Configuration from the command line, strongest last.
    pub overrides: Vec<Override>,
    /// What threads are said to be started by. The contract has no word for it in a request.
    pub source: ThreadSource,
    /// Files with tokens or secrets, beside those that the configuration names; clients are never served them.
    pub secrets: Vec<PathBuf>,
    /// How the keepers of commands are started.
    pub keeper: KeeperCommand,
    /// How it is found out how strong the fence of this machine is. Without it nothing is run in a sandbox.
    pub measure_sandbox: Option<MeasureFn>,
    /// Whether the user's login shell is asked for its `PATH`, unless the configuration says no.
    pub login_shell: bool,
    /// The other processes of the home; without them a thread that another one has is refused.
    pub peers: Option<Arc<dyn Peers>>,
    /// Speaks to vendors outside turns; without it nobody can sign in, and models are only those that the
    /// configuration names.
    pub vendors: Option<Arc<dyn Vendors>>,
    /// How long a websocket may take until its `initialize` is accepted. A parent process may take its time.
    pub first_message: Duration,
    /// How many requests one connection may have running; more are refused with a retry hint.
    pub requests_max: usize,
    /// How many bytes the requests that run on one connection may have come in, together. While there is
    /// no room for the next, the connection is not read. One alone may be larger.
    pub requests_bytes_max: usize,
    /// How long running requests may take to finish once their connection has ended. When the server
    /// was told to stop, a slow client may take as long again for its last answers.
    pub drain: Duration,
}

impl Options {
    /// The usual bounds.
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
            first_message: Duration::from_secs(30),
            requests_max: 256,
            requests_bytes_max: 64 << 20,
            drain: Duration::from_secs(30),
        }
    }
}

/// Where things live.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The home that clients are told of.
    pub home: PathBuf,
    /// The administrator's configuration; may be missing.
    pub system_config: PathBuf,
    /// The user's configuration; may be missing.
    pub user_config: PathBuf,
    /// The user's skills; may be missing.
    pub skills: PathBuf,
    /// Files that say what agents may do; may be missing.
    pub rules: Vec<PathBuf>,
    /// The file that holds the threads, if there is one; whoever looks at a thread is told.
    pub threads: Option<PathBuf>,
}

impl Paths {
    /// What commands in a sandbox do not see: keys may be in the configuration, and what was said in threads. What
    /// says what they may do is named file by file, because each may be a link to somewhere else.
    pub fn hidden_paths(&self) -> Vec<PathBuf> {
        let threads = self.threads.as_deref().and_then(std::path::Path::parent);
        let config = self.user_config.parent();
        let mut own = vec![self.home.clone()];
        own.extend(threads.into_iter().chain(config).map(PathBuf::from));
        own.push(self.user_config.clone());
        own.extend(self.rules.iter().cloned());
        own
    }
}

/// A running server. Give it connections; they share everything behind the gate.
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
    connections: JoinSet<()>,
    /// Those of other processes, which stay until the threads are left.
    relayed: JoinSet<()>,
    draining: watch::Sender<DrainPhase>,
}

/// How far a server has come with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DrainPhase {
    Serving,
    /// Nothing more is taken in.
    Draining,
    /// No thread is left.
    ThreadsUnloaded,
}

impl Server {
    /// Reads the configuration and opens the rooms. `threads` makes the live threads, on the ground
    /// it is given.
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

    /// Serves a connection beside the others. The receiver it returns closes when the connection ends.
    pub fn serve(&mut self, connection: Connection) -> watch::Receiver<()> {
        while self.connections.try_join_next().is_some() {}
        let (ended, when_ended) = watch::channel(());
        let rooms = self.state.clone();
        let draining = self.draining.subscribe();
        while self.relayed.try_join_next().is_some() {}
        let beside = match connection.peer.transport {
            Transport::Relay => &mut self.relayed,
            _ => &mut self.connections,
        };
        beside.spawn(async move {
            connection::serve(connection, rooms, draining).await;
            drop(ended);
        });
        when_ended
    }

    /// The pages `/livez` and `/metrics`, for doors to show. Whoever looks at `/livez` comes in as a client
    /// too: serve what the receiver gives where connections are taken, or it finds that nobody does.
    pub fn status_pages(&self) -> (Arc<dyn AdminPages>, mpsc::Receiver<Connection>) {
        let (board, callers) = status_pages::open(self.state.clone());
        (Arc::new(board), callers)
    }

    /// Stops reading, lets running requests finish, says goodbye to every client, and leaves every thread
    /// in good order. Only then the connections of other processes end, so that these find the threads free.
    pub async fn drain(&mut self) {
        self.draining.send_replace(DrainPhase::Draining);
        while self.connections.join_next().await.is_some() {}
        // A journal that is away must not keep a server that was told to stop.
        let patience = self.state.options.drain;
        if timeout(patience, self.state.threads.close()).await.is_err() {
            tracing::warn!("threads were not left in good order; the journal did not answer");
        }
        self.draining.send_replace(DrainPhase::ThreadsUnloaded);
        while self.relayed.join_next().await.is_some() {}
    }

    /// How many connections ended by a fault of the server's own, each of which the log tells.
    pub fn panicked_connections(&self) -> u64 {
        self.state.panicked_connections.load(Ordering::Relaxed)
    }

    /// How many connections are open.
    pub fn connections(&mut self) -> usize {
        while self.connections.try_join_next().is_some() {}
        while self.relayed.try_join_next().is_some() {}
        self.connections.len() + self.relayed.len()
    }
}
