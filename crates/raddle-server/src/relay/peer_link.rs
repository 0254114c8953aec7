//! The messages of another process on their way to a client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use raddle_protocol::methods::{Initialize, ThreadLoadedList};
use raddle_protocol::table::Method;
use raddle_protocol::{InitializeParams, ThreadId};
use raddle_rpc::{Connection, Frame, Inbound, Incoming, parse};
use serde::Deserialize;
use serde_json::value::to_raw_value;
use tokio::time::timeout;
use tracing::Instrument;

use super::links::{PeerLink, PeerResponse};
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

impl PeerLink {
    /// Sends `initialize` for the client, and forwards incoming messages.
    pub(super) fn open(
        state: &Arc<ServerState>,
        session: &Arc<Session>,
        connection: Connection,
        introduction: &InitializeParams,
    ) -> Arc<Self> {
        let number = session.number;
        let link = Arc::new(Self::new(connection.outgoing, number));
        if let Ok(params) = to_raw_value(&relayed_params(introduction)) {
            link.send_request(
                Initialize::NAME,
                &params,
                Box::new(move |response| {
                    if let PeerResponse::Error(error) = response {
                        let error = &*error.message;
                        tracing::warn!(
                            connection = number,
                            error,
                            "another process rejected a client"
                        );
                    }
                }),
            );
        }
        let (state, session, spawned_link) = (state.clone(), session.clone(), link.clone());
        let span = session.span.clone();
        let forwarding = async move {
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
        };
        tokio::spawn(forwarding.instrument(span));
        link
    }

    async fn forward_messages(
        self: &Arc<Self>,
        state: &Arc<ServerState>,
        session: &Arc<Session>,
        mut incoming: Incoming,
    ) {
        while let Some(frame) = self.next(&mut incoming).await {
            let Frame::Message(frame) = frame else {
                let connection = session.number;
                tracing::warn!(connection, "a message of another process was too long");
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
                    if notification.method == "deprecationNotice" {
                        // It is about a request of the client, so it names no thread.
                        if session.receives(&notification.method) {
                            session.outgoing.send(frame.clone());
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
                    let connection = session.number;
                    tracing::warn!(connection, ?fault, "invalid message from another process");
                    continue;
                }
            };
            let Some(id) = thread.filter(|id| session.relay.is_subscribed(*id, self)) else {
                continue;
            };
            let seq = seq_of(&frame);
            let wants_seq = session.client().is_some_and(|it| it.wants_seq);
            let is_received = method.as_deref().is_none_or(|it| session.receives(it));
            let frame_of_client = || match seq {
                Some(seq) if !wants_seq => without_seq(seq, &frame),
                _ => frame.clone(),
            };
            let frame = match method.as_deref() {
                None => Some(session.request_of_client(frame_of_client())),
                Some("serverRequest/resolved") => {
                    Some(session.resolved_of_client(frame_of_client()))
                }
                Some(_) => is_received.then(frame_of_client),
            };
            if let Some(frame) = frame.filter(|_| is_received) {
                session.outgoing.send(frame);
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
                    let connection = self.connection;
                    tracing::warn!(connection, "another process does not respond");
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
