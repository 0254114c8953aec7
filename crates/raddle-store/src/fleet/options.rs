//! Options of the journal.

use std::fmt;
use std::time::Duration;

/// Options of a [`FleetJournal`](super::FleetJournal).
#[derive(Clone)]
pub struct FleetOptions {
    /// Address of the database, as `postgres://…` or as keywords and values. It may name several
    /// hosts; the journal uses the one that accepts writes.
    pub address: String,
    /// Schema of the tables, which is created if it is missing: lower-case letters, digits and `_`.
    /// Two journals in one database have different ones.
    pub schema: String,
    /// Number of connections for appends that survive the loss of power.
    pub event_connections: usize,
    /// Number of connections for reads.
    pub read_connections: usize,
    /// Time for one statement; beyond it, its connection is dropped.
    pub statement_max: Duration,
    /// Time for which text of an open item may be in the log of the node only. Beyond it, the journal
    /// copies the text to the thread, so that the log stays short.
    pub gathered_max: Duration,
    /// Time between two rounds that shorten the log of the node.
    pub upkeep: Duration,
    /// Time between two signs of life in the row of the node's log, and between two looks at those of
    /// other nodes. A log without a sign in ten looks is removed.
    pub beat: Duration,
}

impl FleetOptions {
    /// Creates options with the default limits.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            schema: "raddle".to_owned(),
            event_connections: 6,
            read_connections: 2,
            statement_max: Duration::from_secs(8),
            gathered_max: Duration::from_secs(30),
            upkeep: Duration::from_secs(5),
            beat: Duration::from_secs(60),
        }
    }

    /// Number of connections of a journal: besides those above, one each for batches of the node log,
    /// other deltas, searches, blobs, transactions and the search index.
    pub(super) fn connections(&self) -> usize {
        self.event_connections + self.read_connections + 6
    }
}

impl fmt::Debug for FleetOptions {
    /// Omits the address, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetOptions")
            .field("schema", &self.schema)
            .field("event_connections", &self.event_connections)
            .field("read_connections", &self.read_connections)
            .field("statement_max", &self.statement_max)
            .field("gathered_max", &self.gathered_max)
            .field("upkeep", &self.upkeep)
            .field("beat", &self.beat)
            .finish_non_exhaustive()
    }
}
