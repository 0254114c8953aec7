//! The number of messages of one process that may pass in a period.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Messages of one process. Those beyond the budget are dropped and counted.
#[derive(Debug)]
pub(crate) struct MessageBudget {
    messages_max: u32,
    period: Duration,
    current: Mutex<CurrentPeriod>,
}

/// Messages of the current period.
#[derive(Debug, Default)]
struct CurrentPeriod {
    began: Option<Instant>,
    passed: u32,
    dropped: u64,
}

impl MessageBudget {
    /// Returns a budget of this many messages in each period.
    pub(crate) fn new(messages_max: u32, period: Duration) -> Self {
        Self {
            messages_max,
            period,
            current: Mutex::default(),
        }
    }

    fn current(&self) -> MutexGuard<'_, CurrentPeriod> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a message. Returns `None` if it must be dropped, and otherwise how many were dropped
    /// before it since the last one that passed.
    pub(crate) fn take(&self, now: Instant) -> Option<u64> {
        let mut current = self.current();
        let is_over = |began: Instant| now.saturating_duration_since(began) >= self.period;
        if current.began.is_none_or(is_over) {
            (current.began, current.passed) = (Some(now), 0);
        }
        if current.passed == self.messages_max {
            current.dropped += 1;
            return None;
        }
        current.passed += 1;
        Some(std::mem::take(&mut current.dropped))
    }

    /// Counts messages that were dropped for another reason.
    pub(crate) fn add_dropped(&self, count: u64) {
        self.current().dropped += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_dropped_and_counted() {
        let period = Duration::from_secs(60);
        let (budget, start) = (MessageBudget::new(100, period), Instant::now());
        for _ in 0..100 {
            assert_eq!(budget.take(start), Some(0));
        }
        let later = start + period - Duration::from_millis(1);
        for _ in 0..1_000 {
            assert_eq!(budget.take(later), None);
        }
        budget.add_dropped(5);
        assert_eq!(budget.take(start + period), Some(1_005));
        assert_eq!(budget.take(start + period), Some(0));
    }
}
