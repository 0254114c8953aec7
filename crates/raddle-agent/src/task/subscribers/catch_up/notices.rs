//! Events that are not records, queued for a subscriber that catches up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Delivery;

/// Limit: notices kept for each thread of a client that reads from the journal; beyond it, the
/// oldest is dropped.
const NOTICES_MAX: usize = 64;

/// Events to deliver after all records. When the queue is full, the oldest are dropped, because
/// they are outdated by then.
///
/// The task and the catch-up job share the queue.
#[derive(Clone, Default)]
pub(super) struct Notices(Arc<Mutex<VecDeque<Delivery>>>);

impl Notices {
    /// Queues an event. Returns false if the other end is dropped.
    pub(super) fn put(&self, notice: Delivery) -> bool {
        let mut queue = self.queue();
        if queue.len() == NOTICES_MAX {
            queue.pop_front();
        }
        queue.push_back(notice);
        drop(queue);
        !self.is_disconnected()
    }

    pub(super) fn next(&self) -> Option<Delivery> {
        self.queue().pop_front()
    }

    /// Whether the other end is dropped.
    pub(super) fn is_disconnected(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Delivery>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::ThreadId;
    use raddle_protocol::{Notification, ThreadClosedNotification, ThreadDeletedNotification};

    use super::*;

    #[test]
    fn the_newest_notices_are_kept_and_a_dropped_end_is_detected() {
        let thread_id = ThreadId::mint();
        let closed = Delivery::Notice(Arc::new(ThreadClosedNotification { thread_id }.into()));
        let deleted = Delivery::Notice(Arc::new(ThreadDeletedNotification { thread_id }.into()));
        let thread = Notices::default();
        let reader = thread.clone();
        assert!(thread.put(deleted));
        for _ in 0..NOTICES_MAX {
            assert!(thread.put(closed.clone()));
        }
        drop(thread);
        assert!(reader.is_disconnected());
        let notices: Vec<_> = std::iter::from_fn(|| reader.next()).collect();
        assert_eq!(notices.len(), NOTICES_MAX);
        let is_closed = |it: &Delivery| match it {
            Delivery::Notice(it) => matches!(**it, Notification::ThreadClosed(_)),
            _ => false,
        };
        assert!(notices.iter().all(is_closed));
    }
}
