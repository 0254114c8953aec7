//! A client's link to another process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use raddle_protocol::methods::{Initialize, ThreadLoadedList};
use raddle_protocol::table::Method;
use raddle_protocol::{InitializeParams, ThreadId};
use raddle_rpc::{
    Connection, ErrorObject, Frame, Id, Inbound, InboundResponse, Incoming, Outgoing, parse,
    request,
};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;

use super::reattach::reattach_all;
use crate::services::ServerState;
use crate::services::threads::answers;
use crate::session::Session;

/// Limit: messages forwarded from another process that a client has not read; beyond it, the server
/// stops reading the other process, and the client catches up from the journal.
///
/// Backpressure: a client with this many queued bytes receives no more events from other processes
/// until it reads. The owner of the thread then serves it from the journal.
const FORWARDED_BYTES_MAX: usize = 4 << 20;

/// Limit: silence of another process of the home that owes a response (it is probed once, for as
/// long again); beyond it, pending requests fail with `owner_lost`, and the server looks for the
/// owner of its threads again.
///
/// A stopped process keeps its lock and responds to nothing.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// None once the link has ended.
    pending: Mutex<Option<PendingRequests>>,
}

#[derive(Default)]
struct PendingRequests {
    waiting: HashMap<i64, ResponseCallback>,
    last: i64,
}

impl PeerLink {
    /// Sends `initialize` for the client, and forwards incoming messages.
    pub(super) fn open(
        state: &Arc<ServerState>,
        session: &Arc<Session>,
        connection: Connection,
        introduction: &InitializeParams,
    ) -> Arc<Self> {
        let link = Arc::new(Self {
            outgoing: connection.outgoing,
            pending: Mutex::new(Some(PendingRequests::default())),
        });
        if let Ok(params) = to_raw_value(&relayed_params(introduction)) {
            link.send_request(
                Initialize::NAME,
                &params,
                Box::new(|response| {
                    if let PeerResponse::Error(error) = response {
                        tracing::warn!(error = %error.message, "another process rejected a client");
                    }
                }),
            );
        }
        let (state, session, spawned_link) = (state.clone(), session.clone(), link.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = spawned_link.forward_messages(&state, &session, connection.incoming) => {}
                // Anything sent from here on would be lost.
                () = spawned_link.outgoing.when_gone() => {}
            }
            spawned_link.outgoing.mark_gone();
            spawned_link.end();
            reattach_all(
                &state,
                &session,
                session.relay.take_subscriptions_of(&spawned_link),
            );
        });
        link
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
                tracing::error!(method, %error, "a request cannot be serialised");
                callback(PeerResponse::NotSent);
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.pending().is_none()
    }

    async fn forward_messages(
        self: &Arc<Self>,
        state: &Arc<ServerState>,
        session: &Arc<Session>,
        mut incoming: Incoming,
    ) {
        while let Some(frame) = self.next(&mut incoming).await {
            let Frame::Message(frame) = frame else {
                tracing::warn!("a message of another process was too long");
                break;
            };
            let mut ends_subscription = false;
            let mut method = None;
            let thread = match parse(&frame) {
                Ok(Inbound::Response(response)) => {
                    self.answer(response);
                    session.outgoing.wait_below(FORWARDED_BYTES_MAX).await;
                    continue;
                }
                Ok(Inbound::Notification(notification)) => {
                    let thread = notification
                        .params
                        .and_then(|params| thread_of(params.get()));
                    if notification.method == "thread/closed" {
                        // The owner unloaded the thread, but the client's subscription must
                        // continue.
                        if let Some(id) = thread.filter(|id| session.relay.is_subscribed(*id, self))
                        {
                            let last_seq = session.relay.forget(id);
                            reattach_all(state, session, last_seq.map(|last_seq| (id, last_seq)));
                        }
                        continue;
                    }
                    ends_subscription =
                        matches!(&*notification.method, "thread/deleted" | "thread/archived");
                    method = Some(notification.method);
                    thread
                }
                Ok(Inbound::Request(request)) => {
                    answers::request_of_id(&request.id).map(|(id, _)| id)
                }
                Err(fault) => {
                    tracing::warn!(?fault, "invalid message from another process");
                    continue;
                }
            };
            let Some(id) = thread.filter(|id| session.relay.is_subscribed(*id, self)) else {
                continue;
            };
            let seq = seq_of(&frame);
            let wants_seq = session.client().is_some_and(|it| it.wants_seq);
            let is_subscribed = method.is_none_or(|it| session.receives(&it));
            if is_subscribed {
                session.outgoing.send(match seq {
                    Some(seq) if !wants_seq => without_seq(seq, &frame),
                    _ => frame.clone(),
                });
            }
            session.relay.mark_received(id, seq);
            if ends_subscription {
                session.relay.forget(id);
            }
            session.outgoing.wait_below(FORWARDED_BYTES_MAX).await;
        }
    }

    /// Returns the next frame. A process that owes a response, and does not answer the probe
    /// either, counts as dead.
    async fn next(&self, incoming: &mut Incoming) -> Option<Frame> {
        let mut is_probed = false;
        loop {
            match timeout(SILENCE_TIMEOUT, incoming.next()).await {
                Ok(frame) => return frame,
                Err(_) if is_probed => {
                    tracing::warn!("another process does not respond");
                    return None;
                }
                Err(_) if self.has_pending_requests() => {
                    is_probed = true;
                    if let Ok(params) = to_raw_value(&serde_json::json!({})) {
                        self.send_request(ThreadLoadedList::NAME, &params, Box::new(|_| {}));
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Whether a request waits for its response.
    fn has_pending_requests(&self) -> bool {
        self.pending()
            .as_ref()
            .is_some_and(|it| !it.waiting.is_empty())
    }

    fn answer(&self, response: InboundResponse<'_>) {
        let callback = match response.id {
            Id::Integer(id) => self
                .pending()
                .as_mut()
                .and_then(|it| it.waiting.remove(&id)),
            Id::String(_) => None,
        };
        let Some(callback) = callback else {
            return tracing::warn!(id = %response.id, "response to an unknown request id from another process");
        };
        callback(match response.outcome {
            Ok(result) => PeerResponse::Result(result),
            Err(error) => PeerResponse::Error(error),
        });
    }

    /// Marks the link as ended, and fails the pending requests.
    fn end(&self) {
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

/// Returns the client's `initialize` params with all notifications and with sequence numbers: the
/// relay must know where to continue. The relay removes what the client does not want.
fn relayed_params(introduction: &InitializeParams) -> serde_json::Value {
    let mut params = serde_json::to_value(introduction).unwrap_or_default();
    if params["capabilities"].is_null() {
        params["capabilities"] = serde_json::json!({});
    }
    if params["capabilities"]["extensions"].is_null() {
        params["capabilities"]["extensions"] = serde_json::json!({});
    }
    params["capabilities"]["extensions"]["raddle/seq"] = serde_json::json!({});
    params["capabilities"]["optOutNotificationMethods"] = serde_json::json!([]);
    params
}

/// Returns the thread that a notification is about.
fn thread_of(params: &str) -> Option<ThreadId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct NotifiedThread {
        thread_id: Option<ThreadId>,
        thread: Option<ThreadObject>,
    }
    #[derive(Deserialize)]
    struct ThreadObject {
        id: ThreadId,
    }
    let notified: NotifiedThread = serde_json::from_str(params).ok()?;
    notified
        .thread_id
        .or(notified.thread.map(|thread| thread.id))
}

/// Returns the sequence number of the record that a notification completes.
fn seq_of(frame: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct SeqField {
        seq: Option<u64>,
    }
    let field: SeqField = serde_json::from_slice(frame).ok()?;
    field.seq
}

/// Removes the sequence number, for a client that did not ask for it. It is the last member of the
/// frame.
fn without_seq(seq: u64, frame: &Bytes) -> Bytes {
    let end = format!(",\"seq\":{seq}}}");
    match frame.strip_suffix(end.as_bytes()) {
        Some(rest) => [rest, b"}"].concat().into(),
        None => frame.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_are_read_and_removed() {
        let numbered =
            raddle_rpc::notification("x", &serde_json::json!({"seq": 1}), Some(3), Some(42));
        assert_eq!(seq_of(&numbered), Some(42));
        let plain = raddle_rpc::notification("x", &serde_json::json!({"seq": 1}), Some(3), None);
        assert_eq!(without_seq(42, &numbered), plain);
        assert_eq!(seq_of(&plain), None);
    }

    #[test]
    fn the_thread_of_a_notification_is_found_in_both_forms() {
        let id = ThreadId::mint();
        for params in [
            format!(r#"{{"threadId": "{id}", "turn": {{"id": "t"}}}}"#),
            format!(r#"{{"thread": {{"id": "{id}", "name": null}}}}"#),
        ] {
            assert_eq!(thread_of(&params), Some(id));
        }
        assert_eq!(thread_of(r#"{"path": "/x"}"#), None);
    }
}
