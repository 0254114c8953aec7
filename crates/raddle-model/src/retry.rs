//! Delays before retries of a call.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first delay. Each further one is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(200);

/// The longest delay that the client chooses by itself.
const DELAY_MAX: Duration = Duration::from_secs(30);

/// Returns the delay after a failed attempt, counted from 1. The delay that the vendor asks for is
/// a minimum. Jitter keeps callers from retrying at the same moment.
pub fn wait(attempt: u32, retry_after: Option<Duration>) -> Duration {
    jittered(attempt, retry_after, random_fraction())
}

/// Adds up to a fifth, by a random number between 0 and 1.
fn jittered(attempt: u32, retry_after: Option<Duration>, jitter: f64) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let wait = (FIRST_DELAY * (1 << doublings)).min(DELAY_MAX);
    let wait = wait.max(retry_after.unwrap_or_default());
    wait.saturating_add(wait.min(DELAY_MAX).mul_f64(0.2 * jitter))
}

/// Returns a random number. The keys of hash maps are random, and need no further crate.
fn random_fraction() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_honour_the_vendor() {
        let s = Duration::from_secs;
        for (attempt, retry_after, jitter, expected_ms) in [
            (0, None, 0.0, 200),
            (1, None, 0.0, 200),
            (2, None, 0.0, 400),
            (5, None, 0.5, 3520),
            (20, None, 0.0, 30_000),
            (20, None, 1.0, 36_000),
            (1, Some(s(7)), 0.0, 7000),
            (1, Some(s(600)), 1.0, 606_000),
            (6, Some(s(1)), 0.0, 6400),
        ] {
            let delay = jittered(attempt, retry_after, jitter).as_millis();
            assert_eq!(delay, expected_ms, "{attempt} {retry_after:?}");
        }
    }

    #[test]
    fn two_callers_wait_differently() {
        let waits: std::collections::BTreeSet<_> = (0..100).map(|_| wait(8, None)).collect();
        assert!(waits.len() > 50, "{waits:?}");
        let range = Duration::from_millis(25_600)..=Duration::from_millis(30_720);
        assert!(waits.iter().all(|it| range.contains(it)), "{waits:?}");
    }
}
