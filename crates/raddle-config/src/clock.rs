//! The wall clock, for crates that keep times with the types of the core.

use std::time::SystemTime;

use raddle_core::Timestamp;

/// Returns the current time.
pub fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Returns the seconds since 1970.
pub fn now_s() -> u64 {
    u64::try_from(now().seconds()).unwrap_or_default()
}
