//! The client's end of the connection: messages to it, and its answers to requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use raddle_rpc::{ErrorObject, Id, InboundResponse, Outgoing};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// The MCP client. Every message carries `jsonrpc`, which the server's own wire leaves out.
#[derive(Debug)]
pub(crate) struct McpPeer {
    outgoing: Outgoing,
    /// Whether the client declared that it shows forms.
    shows_forms: AtomicBool,
    next_id: AtomicI64,
    /// Requests that the client has not answered.
    pending: Mutex<HashMap<i64, oneshot::Sender<Option<Value>>>>,
}

impl McpPeer {
    pub(crate) fn new(outgoing: Outgoing) -> Self {
        Self {
            outgoing,
            shows_forms: AtomicBool::new(false),
            next_id: AtomicI64::new(1),
            pending: Mutex::default(),
        }
    }

    /// Notes the capabilities of the client.
    pub(crate) fn declare(&self, capabilities: &Value) {
        let elicitation = capabilities.get("elicitation").filter(|it| it.is_object());
        // Without a mode, a client shows forms.
        let shows_forms =
            elicitation.is_some_and(|it| it.get("form").is_some() || it.get("url").is_none());
        self.shows_forms.store(shows_forms, Ordering::Relaxed);
    }

    pub(crate) fn shows_forms(&self) -> bool {
        self.shows_forms.load(Ordering::Relaxed)
    }

    pub(crate) fn answer(&self, id: &Id, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    pub(crate) fn refuse(&self, id: &Id, error: &ErrorObject) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request. Dropping the result withdraws it.
    pub(crate) fn request(self: &Arc<Self>, method: &str, params: &Value) -> PendingRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.pending().insert(id, sender);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        PendingRequest {
            peer: self.clone(),
            id,
            answer,
        }
    }

    /// Delivers an answer of the client.
    pub(crate) fn deliver(&self, response: InboundResponse<'_>) {
        let sender = match &response.id {
            Id::Integer(id) => self.pending().remove(id),
            Id::String(_) => None,
        };
        let Some(sender) = sender else {
            tracing::debug!(id = %response.id, "response to an unknown request id");
            return;
        };
        let result = match response.outcome {
            Ok(result) => serde_json::from_str(result.get()).ok(),
            Err(error) => {
                let message = &*error.message;
                tracing::warn!(message, "the MCP client failed to answer a request");
                None
            }
        };
        // The request may have been withdrawn meanwhile.
        let _ = sender.send(result);
    }

    fn send(&self, message: &Value) {
        self.outgoing.send(Bytes::from(message.to_string()));
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<i64, oneshot::Sender<Option<Value>>>> {
        // No code panics while holding the lock.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request to the client. It is withdrawn when it is dropped without an answer.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    peer: Arc<McpPeer>,
    id: i64,
    answer: oneshot::Receiver<Option<Value>>,
}

impl PendingRequest {
    /// Waits for the result; `None` if the client failed.
    pub(crate) async fn answer(mut self) -> Option<Value> {
        (&mut self.answer).await.ok().flatten()
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.peer.pending().remove(&self.id).is_some() {
            let params = json!({ "requestId": self.id, "reason": "it is settled otherwise" });
            self.peer.notify("notifications/cancelled", &params);
        }
    }
}
