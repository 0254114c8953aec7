//! Timeouts of a call.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::CallError;

/// Timeouts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// Timeout for the connection.
    pub connect: Duration,
    /// Timeout for the next meaningful event. Keep-alives do not count.
    pub idle: Duration,
    /// Timeout for the whole answer.
    pub total: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            // Limit: time for the connection to a model, unless the provider's configuration sets
            // it; beyond it, the call is retried.
            connect: Duration::from_secs(20),
            // Limit: silence of a model, unless the provider's configuration sets it; beyond it,
            // the call is retried.
            idle: Duration::from_secs(300),
            // Limit: time for a model's whole response, unless the provider's configuration sets
            // it; beyond it, the call fails.
            total: Duration::from_secs(60 * 60),
        }
    }
}

/// The deadlines of a running call. It has one timer, which is reset only when it fires.
#[derive(Debug)]
pub(crate) struct CallDeadline {
    timeouts: CallTimeouts,
    total_deadline: Instant,
    /// Start of the wait without a meaningful event. Time in which no caller waits does not count
    /// as the vendor's silence.
    silent_since: Option<Instant>,
    /// It never fires later than the timeouts require.
    timer: Pin<Box<Sleep>>,
}

impl CallDeadline {
    pub(crate) fn new(timeouts: CallTimeouts) -> Self {
        let now = Instant::now();
        let total_deadline = now + timeouts.total;
        Self {
            timeouts,
            total_deadline,
            silent_since: None,
            timer: Box::pin(sleep_until(total_deadline.min(now + timeouts.idle))),
        }
    }

    /// Restarts the idle timeout after a meaningful event.
    pub(crate) fn renew(&mut self) {
        self.silent_since = None;
    }

    /// Waits for some work, up to the deadlines.
    pub(crate) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, CallError> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            let since = *self.silent_since.get_or_insert_with(Instant::now);
            let due = self.total_deadline.min(since + self.timeouts.idle);
            while self.timer.as_mut().poll(context).is_ready() {
                if Instant::now() >= due {
                    return Poll::Ready(Err(self.timeout_error(due)));
                }
                self.timer.as_mut().reset(due);
            }
            Poll::Pending
        })
        .await
    }

    fn timeout_error(&self, due: Instant) -> CallError {
        let CallTimeouts { idle, total, .. } = self.timeouts;
        if due == self.total_deadline {
            CallError::TooLong { limit: total }
        } else {
            CallError::Silent { limit: idle }
        }
    }
}
