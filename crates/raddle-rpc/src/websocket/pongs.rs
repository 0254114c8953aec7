//! The pong that is owed.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// What the peer last pinged with, until it is answered. Of several pings the last one counts, as the
/// standard allows, so however many come, one is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Pongs(Arc<PongState>);

#[derive(Debug, Default)]
struct PongState {
    payload: Mutex<Option<Bytes>>,
    news: Notify,
}

impl Pongs {
    /// A ping came.
    pub(super) fn set(&self, payload: Bytes) {
        *self
            .0
            .payload
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(payload);
        self.0.news.notify_one();
    }

    /// What is owed now.
    pub(super) fn take(&self) -> Option<Bytes> {
        let mut owed = self
            .0
            .payload
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        owed.take()
    }

    /// Waits until one may be owed.
    pub(super) async fn changed(&self) {
        self.0.news.notified().await;
    }
}
