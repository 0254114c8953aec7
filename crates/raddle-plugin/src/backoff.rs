//! Waits between the starts of an MCP server or a plugin that fails.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// First wait after a failure; each further failure doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Longest wait between two starts.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Limit: failures of an MCP server or a plugin within three minutes; beyond it, it is not started
/// again for three minutes.
const FAILURES_MAX: usize = 5;

/// Period over which failures count.
const PERIOD: Duration = Duration::from_secs(180);

/// Failures of a process, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: VecDeque<Instant>,
}

impl Backoff {
    /// Whether the last failure opened the breaker.
    pub(crate) fn is_open(&self) -> bool {
        self.failures.len() >= FAILURES_MAX
    }

    /// Counts a failure, and returns the wait before the next start.
    pub(crate) fn fail(&mut self, now: Instant) -> Duration {
        while self
            .failures
            .front()
            .is_some_and(|it| now.duration_since(*it) > PERIOD)
        {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        let count = self.failures.len();
        if count >= FAILURES_MAX {
            return PERIOD;
        }
        let doublings = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
        FIRST_WAIT
            .saturating_mul(2u32.saturating_pow(doublings))
            .min(WAIT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_until_the_breaker_opens() {
        let (mut backoff, start) = (Backoff::default(), Instant::now());
        let waits: Vec<u64> = (0..6).map(|_| backoff.fail(start).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 180, 180]);
        assert!(backoff.is_open());
        let later = start + PERIOD + Duration::from_secs(1);
        assert_eq!(backoff.fail(later), FIRST_WAIT);
        assert!(!backoff.is_open());
    }
}
