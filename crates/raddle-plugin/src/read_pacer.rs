//! The pace at which the output of MCP servers and plugins is read.

use std::time::Duration;

use raddle_rpc::marks;
use tokio::time::{Instant, sleep_until};

/// Cost of a message, of each of its bytes and values, and of each byte that is read. A process may
/// send about 1,000 messages, 9 MB or 500,000 values in each second.
const MESSAGE_COST: Duration = Duration::from_millis(1);
const MESSAGE_BYTE_COST_NS: u64 = 95;
const VALUE_COST_NS: u64 = 2_000;
const READ_BYTE_COST_NS: u64 = 10;

/// Cost that is spent at once, before messages are read more slowly. A message of the largest size
/// costs less.
const BURST: Duration = Duration::from_secs(2);

/// Limits how fast the output of one process is read. A process that sends without pause then waits
/// for its pipe or socket, and takes no time from other threads and processes.
#[derive(Debug)]
pub(crate) struct ReadPacer {
    /// When all spent cost is paid off.
    paid_at: Instant,
}

impl ReadPacer {
    /// Creates a pacer with the whole burst.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            paid_at: now.checked_sub(BURST).unwrap_or(now),
        }
    }

    /// Adds the cost of bytes that were read.
    pub(crate) fn spend_read(&mut self, bytes: usize) {
        self.spend(cost(bytes, READ_BYTE_COST_NS), Instant::now());
    }

    /// Adds the cost of a message.
    pub(crate) fn spend_message(&mut self, message: &[u8]) {
        let values = marks::values(message).unwrap_or(marks::VALUES_MAX);
        self.spend(message_cost(message.len(), values), Instant::now());
    }

    fn spend(&mut self, cost: Duration, now: Instant) {
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        self.paid_at = self.paid_at.max(earliest) + cost;
    }

    /// Returns when more may be read.
    pub(crate) fn ready_at(&self) -> Instant {
        self.paid_at
    }

    /// Waits until more may be read. Dropping it early loses nothing.
    pub(crate) async fn wait(&self) {
        if self.paid_at > Instant::now() {
            sleep_until(self.paid_at).await;
        }
    }
}

/// Whether any message of this length is read without a pause.
#[cfg(test)]
pub(crate) fn is_within_burst(bytes: usize) -> bool {
    cost(bytes, READ_BYTE_COST_NS) + message_cost(bytes, marks::VALUES_MAX) < BURST
}

fn message_cost(bytes: usize, values: usize) -> Duration {
    MESSAGE_COST + cost(bytes, MESSAGE_BYTE_COST_NS) + cost(values, VALUE_COST_NS)
}

fn cost(count: usize, each_ns: u64) -> Duration {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    Duration::from_nanos(count.saturating_mul(each_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_the_rest_is_read_at_the_pace() {
        let start = Instant::now() + BURST;
        let mut pacer = ReadPacer { paid_at: start };
        let later = |ms| start + BURST + Duration::from_millis(ms);
        for _ in 0..2000 {
            pacer.spend(MESSAGE_COST, later(0));
        }
        assert_eq!(pacer.paid_at, later(0));
        for _ in 0..500 {
            pacer.spend(MESSAGE_COST, later(0));
        }
        assert_eq!(pacer.paid_at, later(500));
        // A pause restores the burst, and no more than that.
        pacer.spend(MESSAGE_COST, later(60_000));
        assert_eq!(pacer.paid_at, later(60_001) - BURST);
    }

    #[test]
    fn a_new_process_has_the_whole_burst() {
        let mut pacer = ReadPacer::new();
        for _ in 0..1_900 {
            pacer.spend_message(b"");
        }
        assert!(pacer.ready_at() <= Instant::now());
    }
}
