//! The share of a log that the messages of one MCP server or plugin may take.

use std::time::{Duration, Instant};

use crate::message_budget::MessageBudget;

/// Limit: messages that an MCP server or a plugin causes in a log in a minute; beyond it, they are
/// dropped, and their number is logged.
const MESSAGES_MAX: u32 = 100;

/// Limit: acts, secrets and permissions of a plugin in its log in a minute; beyond it, they are
/// dropped, and their number is logged. They have a limit of their own, so that no other message hides
/// them.
const ACTS_MAX: u32 = 1_000;

/// Period over which messages count.
const PERIOD: Duration = Duration::from_secs(60);

/// Messages of one process in a log.
#[derive(Debug)]
pub(crate) struct LogBudget(MessageBudget);

impl Default for LogBudget {
    fn default() -> Self {
        Self(MessageBudget::new(MESSAGES_MAX, PERIOD))
    }
}

impl LogBudget {
    /// Returns the budget of the acts of a plugin.
    pub(crate) fn of_acts() -> Self {
        Self(MessageBudget::new(ACTS_MAX, PERIOD))
    }

    /// Counts a message. Returns `None` if it must be dropped, and otherwise how many were dropped
    /// before it since the last one that was logged.
    pub(crate) fn take(&self, now: Instant) -> Option<u64> {
        self.0.take(now)
    }
}
