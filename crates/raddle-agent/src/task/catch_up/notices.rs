//! What is no record, for one who reads for itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Delivery;

/// How many are kept.
const NOTICES_MAX: usize = 64;

/// What is heard after all records. Of very many the oldest have passed by then, and are forgotten.
///
/// The thread has one end and the reader the other.
#[derive(Clone, Default)]
pub(super) struct Notices(Arc<Mutex<VecDeque<Delivery>>>);

impl Notices {
    /// Keeps one; false when nobody has the other end.
    pub(super) fn put(&self, notice: Delivery) -> bool {
        let mut kept = self.kept();
        if kept.len() == NOTICES_MAX {
            kept.pop_front();
        }
        kept.push_back(notice);
        drop(kept);
        !self.is_alone()
    }

    pub(super) fn next(&self) -> Option<Delivery> {
        self.kept().pop_front()
    }

    /// Whether nobody has the other end any more.
    pub(super) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Delivery>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::ThreadId;
    use raddle_protocol::{Notification, ThreadClosedNotification, ThreadDeletedNotification};

    use super::*;

    #[test]
    fn the_newest_are_kept_and_an_end_knows_when_it_is_alone() {
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
        assert!(reader.is_alone());
        let kept: Vec<_> = std::iter::from_fn(|| reader.next()).collect();
        assert_eq!(kept.len(), NOTICES_MAX);
        let is_closed = |it: &Delivery| match it {
            Delivery::Notice(it) => matches!(**it, Notification::ThreadClosed(_)),
            _ => false,
        };
        assert!(kept.iter().all(is_closed));
    }
}
