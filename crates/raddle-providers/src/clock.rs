//! The wall clock.

use std::time::SystemTime;

use raddle_core::Timestamp;

/// Returns the current time.
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
