//! Events of a plugin's answer on their way from the reader of its stdout, which never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    let waiting = Arc::new(AtomicUsize::new(0));
    let sender = AnswerSender {
        waiting: waiting.clone(),
        sender,
    };
    (sender, AnswerReceiver { waiting, receiver })
}

/// Sends the events of one answer.
#[derive(Clone, Debug)]
pub(crate) struct AnswerSender {
    waiting: Arc<AtomicUsize>,
    sender: mpsc::UnboundedSender<(usize, Value)>,
}

impl AnswerSender {
    /// Sends an event, without waiting. Returns false if too many wait, or nobody receives them.
    pub(super) fn send(&self, event: Value) -> bool {
        let bytes = event.to_string().len().max(EVENT_BYTES_MIN);
        let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        waiting + bytes <= WAITING_BYTES_MAX && self.sender.send((bytes, event)).is_ok()
    }
}

/// Receives the events of one answer.
pub(super) struct AnswerReceiver {
    waiting: Arc<AtomicUsize>,
    receiver: mpsc::UnboundedReceiver<(usize, Value)>,
}

impl AnswerReceiver {
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
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        Some(event)
    }
}
