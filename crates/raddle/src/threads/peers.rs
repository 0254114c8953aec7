//! The other processes of a home.

use std::io;
use std::path::{Path, PathBuf};

use raddle_agent::Liveness;
use raddle_core::ports::{BoxFuture, ReadError};
use raddle_rpc::{Connection, DialError, PeerListener, dial};
use raddle_server::{PeerCaller, PeerNode, Peers};
use raddle_store::NodeLock;
use tokio::sync::mpsc;

use super::VERSION;

/// Accepts connections of other processes of the home. Without it, their requests for our threads
/// fail, and nothing else.
pub(super) fn open_listener(folder: &Path, node: &str, peer_connections: mpsc::Sender<Connection>) {
    let opened = NodeLock::socket_path(folder, node)
        .map_err(io::Error::other)
        .and_then(|path| PeerListener::open(&path));
    match opened {
        Ok(listener) => drop(tokio::spawn(listener.serve(VERSION, peer_connections))),
        Err(error) => tracing::warn!(%error, "other processes of this home cannot connect"),
    }
}

/// The other processes of this home.
#[derive(Debug)]
pub(super) struct LocalPeers {
    pub(super) folder: PathBuf,
}

impl Peers for LocalPeers {
    fn alive(&self) -> BoxFuture<'_, Vec<PeerNode>> {
        let folder = self.folder.clone();
        Box::pin(async move {
            let nodes = tokio::task::spawn_blocking(move || NodeLock::alive(&folder));
            let alive = nodes.await.map_err(io::Error::other);
            let names = alive
                .and_then(|it| it.map_err(io::Error::other))
                .unwrap_or_default();
            names.into_iter().map(|name| PeerNode { name }).collect()
        })
    }

    fn dial<'a>(
        &'a self,
        node: &'a str,
        caller: PeerCaller<'a>,
    ) -> BoxFuture<'a, Result<Connection, DialError>> {
        Box::pin(async move {
            let path = NodeLock::socket_path(&self.folder, node).map_err(io::Error::other)?;
            dial(&path, VERSION, caller.principal).await
        })
    }
}

impl Liveness for LocalPeers {
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        let (folder, node) = (self.folder.clone(), node.to_owned());
        Box::pin(async move {
            let liveness = tokio::task::spawn_blocking(move || NodeLock::is_alive(&folder, &node));
            let alive = liveness.await.map_err(stopped)?;
            alive.map_err(|error| ReadError::Unavailable(error.to_string()))
        })
    }
}

/// Returns the error of a task that did not end.
pub(super) fn stopped(error: tokio::task::JoinError) -> ReadError {
    ReadError::Unavailable(error.to_string())
}
