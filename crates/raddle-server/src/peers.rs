//! The port to the other nodes that share the journal.

use std::fmt;

use raddle_agent::Liveness;
use raddle_core::ports::BoxFuture;
use raddle_rpc::{Connection, DialError};

/// The nodes that share the journal. Their liveness and the connections to them come from one
/// source, so that a node that is alive can be dialled.
pub trait Peers: Liveness + fmt::Debug {
    /// Returns the nodes that are alive; this node may be among them. Empty if they are unknown.
    fn alive(&self) -> BoxFuture<'_, Vec<PeerNode>>;

    /// Connects to the node with this name, for a client.
    fn dial<'a>(
        &'a self,
        node: &'a str,
        caller: PeerCaller<'a>,
    ) -> BoxFuture<'a, Result<Connection, DialError>>;
}

/// A node that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerNode {
    /// Name of the node.
    pub name: String,
}

/// Client for which a node connects to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCaller<'a> {
    /// Principal of the client; `None` if it has none.
    pub principal: Option<&'a str>,
}
