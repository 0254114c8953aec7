//! The pace at which broken streams are opened again, and messages are read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::read_pacer::ReadPacer;

/// Interval between two streams that are opened, after the first.
const INTERVAL: Duration = Duration::from_millis(250);

/// Paces the streams of one server: a server that breaks each stream at once is not called in a
/// busy loop, and a stream with an event over the limit is not opened again. All streams together
/// are read at the pace of one server.
#[derive(Debug)]
pub(super) struct StreamPacer {
    next: Mutex<Option<Instant>>,
    is_refused: AtomicBool,
    reads: Mutex<ReadPacer>,
}

impl StreamPacer {
    pub(super) fn new() -> Self {
        Self {
            next: Mutex::default(),
            is_refused: AtomicBool::new(false),
            reads: Mutex::new(ReadPacer::new()),
        }
    }

    fn reads(&self) -> MutexGuard<'_, ReadPacer> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until more may be read.
    pub(super) async fn wait_to_read(&self) {
        let ready_at = self.reads().ready_at();
        if ready_at > Instant::now() {
            sleep_until(ready_at).await;
        }
    }

    /// Adds the cost of bytes that were read.
    pub(super) fn spend_read(&self, bytes: usize) {
        self.reads().spend_read(bytes);
    }

    /// Adds the cost of a message.
    pub(super) fn spend_message(&self, message: &[u8]) {
        self.reads().spend_message(message);
    }

    /// Waits until a stream may be opened.
    pub(super) async fn wait(&self) {
        sleep_until(self.reserve(Instant::now())).await;
    }

    fn reserve(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let reserved = next.map_or(now, |it| it.max(now));
        *next = Some(reserved + INTERVAL);
        reserved
    }

    /// Refuses the next stream: it would deliver the same event again.
    pub(super) fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Returns whether the stream to be opened is refused.
    pub(super) fn take_refusal(&self) -> bool {
        self.is_refused.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stream_is_opened_at_once_and_later_ones_in_turn() {
        let (pacer, now) = (StreamPacer::new(), Instant::now());
        let starts = [0, 0, 100, 5000].map(|ms| {
            let reserved = pacer.reserve(now + Duration::from_millis(ms));
            reserved.duration_since(now).as_millis()
        });
        assert_eq!(starts, [0, 250, 500, 5000]);
    }
}
