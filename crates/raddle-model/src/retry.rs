//! When a call that broke off may be made again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first wait. Each further one is twice as long.
const FIRST: Duration = Duration::from_millis(200);

/// The longest wait that we choose by ourselves.
const LONGEST: Duration = Duration::from_secs(30);

/// How long to wait after an attempt, counted from 1, that broke off. The vendor's own wish is a least,
/// and no two callers come back at the same moment.
pub fn wait(attempt: u32, wish: Option<Duration>) -> Duration {
    jittered(attempt, wish, chance())
}

/// Up to a fifth more, by a chance between 0 and 1.
fn jittered(attempt: u32, wish: Option<Duration>, chance: f64) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let wait = (FIRST * (1 << doublings)).min(LONGEST);
    let wait = wait.max(wish.unwrap_or_default());
    wait.saturating_add(wait.min(LONGEST).mul_f64(0.2 * chance))
}

/// The keys of hash maps are the randomness that needs no further crate.
fn chance() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_honour_the_vendor() {
        let s = Duration::from_secs;
        for (attempt, wish, chance, wanted_ms) in [
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
            let found = jittered(attempt, wish, chance).as_millis();
            assert_eq!(found, wanted_ms, "{attempt} {wish:?}");
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
