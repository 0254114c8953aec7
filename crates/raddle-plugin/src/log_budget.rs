//! The share of a log that the messages of one MCP server or plugin may take.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limit: messages that an MCP server or a plugin causes in a log in a minute; beyond it, they are
/// dropped, and their number is logged.
const MESSAGES_MAX: u32 = 100;

/// Period over which messages count.
const PERIOD: Duration = Duration::from_secs(60);

/// Messages of one process in a log.
#[derive(Debug, Default)]
pub(crate) struct LogBudget(Mutex<LogPeriod>);

/// Messages of one period.
#[derive(Debug, Default)]
struct LogPeriod {
    began: Option<Instant>,
    logged: u32,
    dropped: u64,
}

impl LogBudget {
    /// Counts a message. Returns `None` if it must be dropped, and otherwise how many were dropped
    /// before it since the last one that was logged.
    pub(crate) fn take(&self, now: Instant) -> Option<u64> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |began: Instant| now.saturating_duration_since(began) >= PERIOD;
        if period.began.is_none_or(is_over) {
            (period.began, period.logged) = (Some(now), 0);
        }
        if period.logged == MESSAGES_MAX {
            period.dropped += 1;
            return None;
        }
        period.logged += 1;
        Some(std::mem::take(&mut period.dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_dropped_and_counted() {
        let (budget, start) = (LogBudget::default(), Instant::now());
        for _ in 0..MESSAGES_MAX {
            assert_eq!(budget.take(start), Some(0));
        }
        let later = start + PERIOD - Duration::from_millis(1);
        for _ in 0..1_000 {
            assert_eq!(budget.take(later), None);
        }
        assert_eq!(budget.take(start + PERIOD), Some(1_000));
        assert_eq!(budget.take(start + PERIOD), Some(0));
    }
}
