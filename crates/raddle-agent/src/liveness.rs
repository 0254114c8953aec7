//! Liveness of the nodes that share a journal.

use raddle_core::ports::{BoxFuture, ReadError};

/// The processes that share a journal.
///
/// Only the fencing of appends keeps two processes from writing to one thread. Liveness merely
/// suggests which process should try.
pub trait Liveness: Send + Sync {
    /// Whether the node with this name is alive.
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>>;
}

/// A single process that does not share its journal.
#[derive(Clone, Copy, Debug)]
pub struct SoleNode;

impl Liveness for SoleNode {
    fn is_alive<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}
