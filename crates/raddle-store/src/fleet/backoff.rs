//! Pauses between connections to a server that accepts them and then does not answer.
//!
//! When a commit waits for a standby that is silent, the server keeps the session and its locks after
//! the client has dropped the connection. Without pauses, such sessions use up `max_connections`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::QueryFailure;

/// Pauses of one connection. They double with each timeout, and end with the first success.
#[derive(Debug)]
pub(super) struct Backoff {
    /// Pause after the first timeout: 0.5 s by default.
    first: Duration,
    /// Longest pause: 32 s by default.
    max: Duration,
    state: Mutex<BackoffState>,
}

#[derive(Debug, Default)]
struct BackoffState {
    /// Number of timeouts since the last success.
    timeouts: u32,
    /// End of the current pause.
    until: Option<Instant>,
}

impl Backoff {
    pub(super) fn new(statement_max: Duration) -> Self {
        Self {
            first: statement_max / 16,
            max: statement_max * 4,
            state: Mutex::default(),
        }
    }

    /// Fails during a pause.
    pub(super) fn check(&self, now: Instant) -> Result<(), QueryFailure> {
        let until = self.state().until;
        match until.and_then(|until| until.checked_duration_since(now)) {
            Some(rest) if !rest.is_zero() => Err(QueryFailure::NotSent(format!(
                "the database did not answer; it is tried again in {rest:.1?}"
            ))),
            _ => Ok(()),
        }
    }

    /// Begins a pause, after a connection was dropped because it did not answer.
    pub(super) fn timed_out(&self, now: Instant) {
        let mut state = self.state();
        let factor = 2_u32.saturating_pow(state.timeouts);
        let pause = self.first.saturating_mul(factor).min(self.max);
        state.timeouts = state.timeouts.saturating_add(1);
        state.until = Some(now + pause);
    }

    pub(super) fn succeeded(&self) {
        *self.state() = BackoffState::default();
    }

    fn state(&self) -> MutexGuard<'_, BackoffState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_until_an_answer() {
        let (backoff, start) = (Backoff::new(Duration::from_secs(8)), Instant::now());
        assert!(backoff.check(start).is_ok());
        let pauses = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 32_000];
        for pause in pauses {
            backoff.timed_out(start);
            let before = start + Duration::from_millis(pause - 1);
            assert!(backoff.check(before).is_err(), "{pause}");
            let end = start + Duration::from_millis(pause);
            assert!(backoff.check(end).is_ok(), "{pause}");
        }
        backoff.succeeded();
        backoff.timed_out(start);
        let end = start + Duration::from_millis(500);
        assert!(backoff.check(end).is_ok());
    }
}
