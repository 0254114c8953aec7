//! Calls of a plugin that were stopped, and on which the plugin may still work.
//!
//! Such a call has no user and no listener any more. Until its late response arrives or the session
//! ends, what the plugin sends without an id may be about it, so it must reach no other owner.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::events::EventOwner;
use super::session::SessionState;

/// Limit: calls of one plugin that were stopped and have no response; beyond it, its process is
/// ended.
const STOPPED_MAX: usize = 256;

/// The stopped calls of one plugin that have no response.
#[derive(Default)]
pub(super) struct StoppedCalls(Mutex<Vec<StoppedCall>>);

/// A stopped call that has no response.
pub(super) struct StoppedCall {
    /// Id of the request.
    pub(super) id: String,
    pub(super) owner: EventOwner,
    /// The session that it belongs to. Another one uses the same ids.
    pub(super) session: SessionState,
}

impl StoppedCalls {
    /// Returns the calls whose session goes on.
    fn calls(&self) -> MutexGuard<'_, Vec<StoppedCall>> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|it| !it.session.is_over());
        calls
    }

    /// Adds a call. Returns whether there are too many.
    #[must_use]
    pub(super) fn add(&self, call: StoppedCall) -> bool {
        let mut calls = self.calls();
        calls.push(call);
        calls.len() > STOPPED_MAX
    }

    /// Removes the call with this id, whose response has arrived. Returns false if there is none.
    pub(super) fn remove(&self, id: &str) -> bool {
        let mut calls = self.calls();
        let found = calls.iter().position(|it| it.id == id);
        found.map(|at| calls.swap_remove(at)).is_some()
    }

    /// Whether the owners of all calls fulfil a condition.
    pub(super) fn all_owners(&self, fulfil: impl Fn(&EventOwner) -> bool) -> bool {
        self.calls().iter().all(|it| fulfil(&it.owner))
    }
}
