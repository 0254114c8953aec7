//! Locking a mutex whatever happened to its last owner.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. A panic of another owner left a valid state.
pub(crate) fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
