//! Who of those that share a journal is alive.

use raddle_core::ports::{BoxFuture, ReadError};

/// The processes that share a journal.
///
/// The fence alone keeps two of them from writing to one thread. This only says who should try.
pub trait Liveness: Send + Sync {
    /// Whether a node of this name is alive now.
    fn is_alive<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Result<bool, ReadError>>;
}

/// Nobody shares the journal.
#[derive(Clone, Copy, Debug)]
pub struct SoleNode;

impl Liveness for SoleNode {
    fn is_alive<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, ReadError>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}
