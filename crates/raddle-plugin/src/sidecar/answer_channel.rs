//! Events of a plugin's answer on their way from the reader of its stdout, which never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::mpsc;

/// Limit: events of one model answer of a plugin that wait for the agent; beyond it, the answer is
/// cut off and the call fails.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Smallest size that an event counts.
const EVENT_BYTES_MIN: usize = 256;

/// Creates a channel.
pub(super) fn channel() -> (AnswerSender, AnswerReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    let sender = AnswerSender {
        backlog: backlog.clone(),
        sender,
    };
    (sender, AnswerReceiver { backlog, receiver })
}

/// Size of the events that wait.
#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    /// Whether an event was dropped.
    is_cut_off: AtomicBool,
}

/// Sends the events of one answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerSender {
    backlog: Arc<Backlog>,
    sender: mpsc::UnboundedSender<(usize, Value)>,
}

impl AnswerSender {
    /// Sends an event, without waiting. Beyond the limit the answer is cut off.
    pub(super) fn send(&self, event: Value) {
        let backlog = &*self.backlog;
        if backlog.is_cut_off.load(Ordering::Relaxed) {
            return;
        }
        let bytes = event.to_string().len().max(EVENT_BYTES_MIN);
        if backlog.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > WAITING_BYTES_MAX {
            backlog.is_cut_off.store(true, Ordering::Relaxed);
            return;
        }
        // Without a receiver, the call is abandoned.
        let _ = self.sender.send((bytes, event));
    }
}

/// Receives the events of one answer.
pub(super) struct AnswerReceiver {
    backlog: Arc<Backlog>,
    receiver: mpsc::UnboundedReceiver<(usize, Value)>,
}

impl AnswerReceiver {
    /// Whether an event was dropped, because too many waited.
    pub(super) fn is_cut_off(&self) -> bool {
        self.backlog.is_cut_off.load(Ordering::Relaxed)
    }

    /// Waits for the next event; `None` once there is no sender.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let received = self.receiver.recv().await;
        self.taken(received)
    }

    /// Returns the next event that has arrived already.
    pub(super) fn ready(&mut self) -> Option<Value> {
        let received = self.receiver.try_recv().ok();
        self.taken(received)
    }

    fn taken(&self, received: Option<(usize, Value)>) -> Option<Value> {
        let (bytes, event) = received?;
        self.backlog.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_nobody_reads_is_cut_off() {
        let (sender, mut receiver) = channel();
        for n in 0..10 {
            sender.send(json!(n));
            assert_eq!(receiver.next().await, Some(json!(n)));
        }
        let long = "x".repeat(WAITING_BYTES_MAX / 4);
        for _ in 0..3 {
            sender.send(json!(long));
        }
        assert!(!receiver.is_cut_off());
        for _ in 0..3 {
            sender.send(json!(long));
        }
        assert!(receiver.is_cut_off());
        drop(sender);
        assert_eq!(std::iter::from_fn(|| receiver.ready()).count(), 3);
        assert_eq!(receiver.next().await, None);
    }
}
