//! Links and remote subscriptions of one client.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use raddle_core::Seq;
use raddle_protocol::{InitializeParams, ThreadId};
use raddle_rpc::{Close, ErrorObject, Id, InboundResponse, Outgoing, request};
use serde_json::value::RawValue;
use tokio::sync::Mutex as AsyncMutex;

/// Links and remote subscriptions of one client.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// The `initialize` params of the client.
    pub(super) introduction: OnceLock<InitializeParams>,
    /// By the names of the processes. Locked while a link is opened, so that there is one.
    pub(super) links: AsyncMutex<PeerLinks>,
    subscriptions: Mutex<HashMap<ThreadId, RemoteSubscription>>,
    /// Threads that are moving back here, with the last record that the client received of each.
    /// The code that removes one resubscribes the client.
    reattaching: Mutex<HashMap<ThreadId, Seq>>,
}

/// The open links of a client.
#[derive(Debug, Default)]
pub(super) struct PeerLinks {
    pub(super) open: HashMap<String, Arc<PeerLink>>,
    /// Whether the client has disconnected, so that no link is opened.
    pub(super) are_closed: bool,
}

/// A thread whose events the client receives from another process.
#[derive(Debug)]
struct RemoteSubscription {
    link: Arc<PeerLink>,
    /// The last record that the client received.
    last_seq: Seq,
}

impl Relay {
    /// Stores the `initialize` params, for use with other processes.
    pub(crate) fn introduce(&self, params: &InitializeParams) {
        let _ = self.introduction.set(params.clone());
    }

    /// Closes all links, when the client disconnects.
    pub(crate) async fn close(&self) {
        self.subscriptions().clear();
        let mut links = self.links.lock().await;
        links.are_closed = true;
        for link in links.open.values() {
            link.outgoing.close(Close::NORMAL);
        }
    }

    pub(super) fn link_of(&self, id: ThreadId) -> Option<Arc<PeerLink>> {
        let subscriptions = self.subscriptions();
        let link = &subscriptions.get(&id)?.link;
        (!link.has_ended()).then(|| link.clone())
    }

    pub(super) fn is_subscribed(&self, id: ThreadId, link: &Arc<PeerLink>) -> bool {
        let subscriptions = self.subscriptions();
        subscriptions
            .get(&id)
            .is_some_and(|it| Arc::ptr_eq(&it.link, link))
    }

    pub(super) fn subscribe(&self, id: ThreadId, link: &Arc<PeerLink>, last_seq: Seq) {
        let link = link.clone();
        self.subscriptions()
            .insert(id, RemoteSubscription { link, last_seq });
    }

    /// Stores that the client received a record.
    pub(super) fn mark_received(&self, id: ThreadId, seq: Option<u64>) {
        if let (Some(subscription), Some(seq)) = (self.subscriptions().get_mut(&id), seq) {
            subscription.last_seq = Seq(seq);
        }
    }

    /// Ends the remote subscription. Returns the last record that the client received.
    pub(crate) fn forget(&self, id: ThreadId) -> Option<Seq> {
        self.reattaching().remove(&id);
        self.subscriptions().remove(&id).map(|it| it.last_seq)
    }

    /// Whether the client follows a thread of another process, or one that is moving back here.
    pub(crate) fn follows(&self, id: ThreadId) -> bool {
        self.subscriptions().contains_key(&id) || self.reattaching().contains_key(&id)
    }

    /// Returns the threads with a remote subscription.
    pub(crate) fn threads(&self) -> Vec<ThreadId> {
        self.subscriptions().keys().copied().collect()
    }

    /// Ends the subscriptions over a link that has ended, and returns them.
    pub(super) fn take_subscriptions_of(&self, link: &Arc<PeerLink>) -> Vec<(ThreadId, Seq)> {
        let mut ended = Vec::new();
        self.subscriptions().retain(|id, it| {
            let is_over_link = Arc::ptr_eq(&it.link, link);
            if is_over_link {
                ended.push((*id, it.last_seq));
            }
            !is_over_link
        });
        ended
    }

    /// Ends the subscription over this link, if there is one. Returns the same as
    /// [`Relay::forget`].
    pub(super) fn forget_from(&self, id: ThreadId, link: &Arc<PeerLink>) -> Option<Seq> {
        self.is_subscribed(id, link).then(|| self.forget(id))?
    }

    fn subscriptions(&self) -> MutexGuard<'_, HashMap<ThreadId, RemoteSubscription>> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reattaching(&self) -> MutexGuard<'_, HashMap<ThreadId, Seq>> {
        self.reattaching
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Outcome of a request that was sent to another process.
pub(super) enum PeerResponse<'a> {
    Result(&'a RawValue),
    Error(ErrorObject),
    /// The link ended before a response came; the request may have run or not.
    Lost,
    /// The request was not sent.
    NotSent,
}

/// Callback for a response. It runs where responses are read, so that events forwarded later are
/// sent after it.
pub(super) type ResponseCallback = Box<dyn FnOnce(PeerResponse<'_>) + Send>;

pub(crate) struct PeerLink {
    pub(super) outgoing: Outgoing,
    /// Number of the client's connection, for the log.
    pub(super) connection: u64,
    /// None once the link has ended.
    pending: Mutex<Option<PendingRequests>>,
}

#[derive(Default)]
struct PendingRequests {
    waiting: HashMap<i64, ResponseCallback>,
    last: i64,
}

impl PeerLink {
    pub(super) fn new(outgoing: Outgoing, connection: u64) -> Self {
        Self {
            outgoing,
            connection,
            pending: Mutex::new(Some(PendingRequests::default())),
        }
    }

    /// Sends a request. The callback receives its outcome.
    pub(super) fn send_request(&self, method: &str, params: &RawValue, callback: ResponseCallback) {
        let mut pending = self.pending();
        let Some(requests) = &mut *pending else {
            drop(pending);
            return callback(PeerResponse::NotSent);
        };
        requests.last += 1;
        match request(&Id::Integer(requests.last), method, &params) {
            Ok(frame) => {
                requests.waiting.insert(requests.last, callback);
                self.outgoing.send(frame);
            }
            Err(error) => {
                drop(pending);
                let connection = self.connection;
                tracing::error!(connection, method, %error, "a request cannot be serialised");
                callback(PeerResponse::NotSent);
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.pending().is_none()
    }

    /// Whether a request waits for its response.
    pub(super) fn has_pending_requests(&self) -> bool {
        self.pending()
            .as_ref()
            .is_some_and(|it| !it.waiting.is_empty())
    }

    pub(super) fn answer(&self, response: InboundResponse<'_>) {
        let callback = match response.id {
            Id::Integer(id) => self
                .pending()
                .as_mut()
                .and_then(|it| it.waiting.remove(&id)),
            Id::String(_) => None,
        };
        let Some(callback) = callback else {
            return tracing::warn!(
                connection = self.connection,
                id = ?response.id,
                "response to an unknown request id from another process"
            );
        };
        callback(match response.outcome {
            Ok(result) => PeerResponse::Result(result),
            Err(error) => PeerResponse::Error(error),
        });
    }

    /// Marks the link as ended, and fails the pending requests.
    pub(super) fn end(&self) {
        let pending = self.pending().take();
        let waiting = pending.map(|it| it.waiting).unwrap_or_default();
        for callback in waiting.into_values() {
            callback(PeerResponse::Lost);
        }
    }

    fn pending(&self) -> MutexGuard<'_, Option<PendingRequests>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PeerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerLink").finish_non_exhaustive()
    }
}
