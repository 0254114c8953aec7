//! The phases of the server's shutdown.

/// Progress of the server's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DrainPhase {
    Serving,
    /// Accepts no more requests.
    Draining,
    /// All threads are unloaded.
    ThreadsUnloaded,
}
