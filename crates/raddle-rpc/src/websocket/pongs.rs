//! The pending pong.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// Payload of the peer's last ping, until it is answered. The standard allows answering only the
/// last of several pings, so one is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Pongs(Arc<PongState>);

#[derive(Debug, Default)]
struct PongState {
    payload: Mutex<Option<Bytes>>,
    updated: Notify,
}

impl Pongs {
    /// Stores the payload of a ping.
    pub(super) fn set(&self, payload: Bytes) {
        *self
            .0
            .payload
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(payload);
        self.0.updated.notify_one();
    }

    /// Takes the pending payload.
    pub(super) fn take(&self) -> Option<Bytes> {
        let mut payload = self
            .0
            .payload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        payload.take()
    }

    /// Waits until there may be a pending pong.
    pub(super) async fn changed(&self) {
        self.0.updated.notified().await;
    }
}
