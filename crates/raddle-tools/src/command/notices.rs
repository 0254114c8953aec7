//! Warnings about paths that the sandbox could not protect.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use raddle_core::ThreadId;
use raddle_sandbox::Notice;

/// Maximum number of notices remembered for all threads together.
const SENT_MAX: usize = 10_000;
/// Maximum number of warnings for one command.
const WARNINGS_MAX: usize = 5;

/// Notices that were already sent, by thread.
#[derive(Debug, Default)]
pub(crate) struct SentNotices(Mutex<HashSet<(ThreadId, Notice)>>);

impl SentNotices {
    /// Returns warnings for the notices that the thread was not sent before.
    pub(super) fn new_ones(&self, thread: ThreadId, notices: Vec<Notice>) -> Vec<String> {
        if notices.is_empty() {
            return Vec::new();
        }
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.len() + notices.len() > SENT_MAX {
            sent.clear();
        }
        let notices = notices.into_iter();
        let new = notices.filter(|it| sent.insert((thread, it.clone())));
        let mut warnings: Vec<String> = new.map(|it| format!("Sandbox: {it}")).collect();
        if warnings.len() > WARNINGS_MAX {
            let more = warnings.len() - (WARNINGS_MAX - 1);
            warnings.truncate(WARNINGS_MAX - 1);
            warnings.push(format!(
                "Sandbox: {more} more paths could not be protected by themselves; `raddle doctor`, run in the \
                 workspace, names them"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_warned_once_and_briefly() {
        let sent = SentNotices::default();
        let (one, other) = (ThreadId::mint(), ThreadId::mint());
        let notices = |count: usize| {
            let path = |it: usize| Notice::Closed(format!("/w/{it}").into());
            (0..count).map(path).collect::<Vec<Notice>>()
        };
        assert_eq!(sent.new_ones(one, notices(2)).len(), 2);
        assert_eq!(sent.new_ones(one, notices(3)).len(), 1);
        let many = sent.new_ones(other, notices(100));
        assert_eq!(many.len(), WARNINGS_MAX);
        assert!(many[WARNINGS_MAX - 1].contains("96 more"), "{many:?}");
        assert!(sent.new_ones(other, Vec::new()).is_empty());
    }
}
