//! Durability of a store.

/// Failure that an event survives after its append, as far as the store can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The store is part of this machine, and survives what its memory or its disk survives.
    Local,
    /// The store is a database that has not answered yet.
    Pending,
    /// Each commit waits for a second copy: events survive the loss of the database's primary.
    Synchronous,
    /// No commit waits for a second copy that the store can see: acknowledged events may be lost with the
    /// database's primary.
    Relaxed,
}

impl Durability {
    /// Whether the store is outside this machine, so that a restart of the server does not repair it.
    pub fn is_remote(self) -> bool {
        self != Self::Local
    }

    /// Returns the name that clients and operators read. A store of this machine has none.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Local => None,
            Self::Pending => Some("pending"),
            Self::Synchronous => Some("synchronous"),
            Self::Relaxed => Some("relaxed"),
        }
    }
}
