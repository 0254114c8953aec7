//! Replies and cancellations, which are posted without waiting for the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::Instrument as _;

/// Limit: replies and cancellations that an MCP server over HTTP has not accepted yet; beyond it,
/// they are dropped.
const PENDING_MAX: usize = 32;

/// Limit: time for an MCP server over HTTP to accept a reply or a cancellation; beyond it, the
/// message is dropped.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a message is a reply to a request of the server, or the cancellation of a request.
pub(super) fn is_control(message: &ClientJsonRpcMessage) -> bool {
    match message {
        ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => true,
        ClientJsonRpcMessage::Notification(it) => {
            let notification = &it.notification;
            matches!(notification, ClientNotification::CancelledNotification(_))
        }
        ClientJsonRpcMessage::Request(_) => false,
    }
}

/// The replies and cancellations of one server that are being posted. The transport posts them one
/// after the other, and keeps all others meanwhile. A server that sends requests and accepts no
/// reply would fill the memory, so here nothing waits for the server.
#[derive(Debug)]
pub(super) struct ControlPosts {
    permits: Arc<Semaphore>,
    /// Number of messages that were dropped because too many were pending.
    dropped: AtomicU64,
}

impl ControlPosts {
    pub(super) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(PENDING_MAX)),
            dropped: AtomicU64::new(0),
        }
    }

    /// Starts a POST in the background, or drops it if too many are pending.
    pub(super) fn start<E: fmt::Display + Send + 'static>(
        &self,
        post: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            let count = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            // A server that floods with requests does not flood the log.
            if count.is_power_of_two() {
                tracing::warn!(count, "an MCP server accepts no replies; they are dropped");
            }
            return;
        };
        let posting = async move {
            match timeout(ACCEPT_TIMEOUT, post).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a reply to an MCP server failed"),
                Err(_) => tracing::debug!("an MCP server did not accept a reply in time"),
            }
            drop(permit);
        };
        tokio::spawn(posting.in_current_span());
    }

    /// Returns the number of dropped messages.
    #[cfg(test)]
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use tokio::sync::oneshot;
    use tokio::time::pause;

    use super::*;

    #[tokio::test]
    async fn a_server_that_accepts_nothing_gets_replies_again_after_the_timeout() {
        pause();
        let posts = ControlPosts::new();
        for _ in 0..100 {
            posts.start(pending::<Result<(), Infallible>>());
        }
        assert_eq!(posts.dropped(), 68);
        // The clock advances to the timeout.
        drop(posts.permits.acquire().await);
        let (sender, accepted) = oneshot::channel();
        posts.start(async move {
            let _ = sender.send(());
            Ok::<_, Infallible>(())
        });
        accepted.await.expect("a reply");
        assert_eq!(posts.dropped(), 68);
    }
}
