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
    /// Time in which another node may take over a thread; beyond it, a forwarded request fails.
    pub take_over: Duration,
    /// Time for the probe of a health page.
    pub probe: Duration,
}

impl StoreTimeouts {
    /// Limits of a store on a disk of this machine.
    pub const LOCAL: Self = Self {
        start: Duration::from_secs(5),
        outage: Duration::from_secs(30),
        take_over: Duration::from_secs(5),
        probe: Duration::from_secs(2),
    };
}
