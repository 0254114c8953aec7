//! How a thread ceases to need batches.

use std::time::Instant;

use raddle_core::ThreadId;

use super::{LogPosition, LogState, NodeLog};

impl NodeLog {
    /// Releases the batches of a thread up to a position: its row moved beyond their deltas, and the
    /// database certainly keeps that row.
    pub(in crate::fleet) fn release(&self, thread: ThreadId, position: LogPosition) {
        let mut state = self.state();
        if state.id == position.log {
            state.release(thread, position.newest);
        }
    }

    /// Releases the batches of a thread that another node has, or that is gone.
    pub(in crate::fleet) fn forget(&self, thread: ThreadId) {
        self.state().holds.remove(&thread);
    }
}

impl LogState {
    fn release(&mut self, thread: ThreadId, upto: i64) {
        let Some(hold) = self.holds.get_mut(&thread) else {
            return;
        };
        if hold.last.is_some_and(|last| last <= upto) {
            self.holds.remove(&thread);
        } else if hold.first <= upto {
            hold.first = upto + 1;
            hold.at = Instant::now();
        }
    }
}
