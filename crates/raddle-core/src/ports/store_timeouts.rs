//! Time limits of a store.

use std::time::Duration;

/// Time limits that depend on how long a store may be silent. A store on a disk answers soon or
/// not at all; a database with a standby is silent while it changes its primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTimeouts {
    /// Time for the first append of a new thread; beyond it, the start fails.
    pub start: Duration,
    /// Time for which a thread waits for a store that is not available; beyond it, the thread is
    /// unloaded.
    pub outage: Duration,
    /// Time for finding the owner of a thread while another node may be about to take it over;
    /// beyond it, a request for that thread fails.
    pub take_over: Duration,
    /// Time for the probe of a health page.
    pub probe: Duration,
}

impl StoreTimeouts {
    /// Limits of a store in memory or on a disk of this machine.
    pub const LOCAL: Self = Self {
        // Limit: time `thread/start` waits for an unavailable journal; beyond it, the server rejects
        // the request with -32001 and says when to retry.
        start: Duration::from_secs(5),
        // Limit: time a loaded thread waits for an unavailable journal, or for the read that a new
        // subscriber needs; beyond it, pending requests get an error, subscribers receive
        // `thread/closed`, and the next request opens the thread again, except `turn/start` of a
        // client without extensions.
        outage: Duration::from_secs(30),
        // Limit: time for finding the owner of a thread whose process is alive and does not respond;
        // beyond it, the server rejects the request with -32600 and names the process.
        take_over: Duration::from_secs(5),
        // Limit: time for the probe of the journal by `/livez`, or by `/readyz` if it is a database;
        // beyond it, the server responds with 503.
        probe: Duration::from_secs(2),
    };
}
