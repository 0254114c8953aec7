//! The public interface of the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use raddle_config::ConfigError;
use raddle_rpc::{AdminPages, Connection, Transport};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::draining::DrainPhase;
use crate::options::Options;
use crate::services::ServerState;
use crate::services::agent_deps::{AgentDeps, AgentParts};
use crate::spans;
use crate::{connection, status_pages};

/// A running server. Its connections share all state behind the gate.
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
    connections: JoinSet<()>,
    /// Connections of other processes, which stay until the threads are unloaded.
    relayed: JoinSet<()>,
    draining: watch::Sender<DrainPhase>,
}

impl Server {
    /// Reads the configuration and opens the server's state. `agent` builds the live threads, and
    /// what belongs to them, from the dependencies it gets.
    pub fn open<F, A>(options: Options, agent: F) -> Result<Self, ConfigError>
    where
        F: FnOnce(AgentDeps) -> A,
        A: Into<AgentParts>,
    {
        let state = Arc::new(ServerState::open(options, agent)?);
        if state.threads.durability().is_remote() {
            // `initialize` does not wait for a database, and says then what events survive.
            let state = state.clone();
            spans::spawn(async move { state.threads.try_journal().await });
        }
        Ok(Self {
            state,
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
