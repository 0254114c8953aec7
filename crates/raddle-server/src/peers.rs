//! The port to the other processes of a home.

use std::fmt;

use raddle_core::ports::BoxFuture;
use raddle_rpc::{Connection, DialError};

/// The other processes of this home.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Returns the names of those that are alive; this process may be among them.
    fn alive(&self) -> BoxFuture<'_, Vec<String>>;

    /// Connects to one of them, for a client of this name.
    fn dial<'a>(
        &'a self,
        node: &'a str,
        principal: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Connection, DialError>>;
}
