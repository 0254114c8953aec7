//! How long a call is waited for.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::CallError;

/// How long a call is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the next thing that means something. That the connection is kept open means nothing.
    pub idle: Duration,
    /// For the whole answer.
    pub total: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(60 * 60),
        }
    }
}

/// What is left of a call's limits. It has one timer, which is set anew only when it rings.
#[derive(Debug)]
pub(crate) struct CallDeadline {
    timeouts: CallTimeouts,
    ends: Instant,
    /// Since when we have waited without hearing anything that means something. Time in which nobody
    /// waits is no silence of the vendor's.
    silent_since: Option<Instant>,
    /// It never rings later than the limits say.
    alarm: Pin<Box<Sleep>>,
}

impl CallDeadline {
    pub(crate) fn new(timeouts: CallTimeouts) -> Self {
        let now = Instant::now();
        let ends = now + timeouts.total;
        Self {
            timeouts,
            ends,
            silent_since: None,
            alarm: Box::pin(sleep_until(ends.min(now + timeouts.idle))),
        }
    }

    /// Something came that means something.
    pub(crate) fn renew(&mut self) {
        self.silent_since = None;
    }

    /// Waits for some work, but not for longer than the limits allow.
    pub(crate) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, CallError> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(done));
            }
            let since = *self.silent_since.get_or_insert_with(Instant::now);
            let due = self.ends.min(since + self.timeouts.idle);
            while self.alarm.as_mut().poll(context).is_ready() {
                if Instant::now() >= due {
                    return Poll::Ready(Err(self.spent(due)));
                }
                self.alarm.as_mut().reset(due);
            }
            Poll::Pending
        })
        .await
    }

    fn spent(&self, due: Instant) -> CallError {
        let CallTimeouts { idle, total, .. } = self.timeouts;
        if due == self.ends {
            CallError::TooLong { limit: total }
        } else {
            CallError::Silent { limit: idle }
        }
    }
}
