//! A client's way to another process.

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

/// A client that has this much queued is sent no more from elsewhere until it has read some: whoever has the
/// thread lets it read on from the journal.
const FORWARDED_BYTES_MAX: usize = 4 << 20;

/// A process that has said nothing for this long and owes an answer is asked whether it is there, and has as long
/// again to say so: one that was stopped keeps its lock, and answers nothing.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);

/// What became of a request that was sent elsewhere.
pub(super) enum PeerResponse<'a> {
    Result(&'a RawValue),
    Error(ErrorObject),
    /// The way ended before an answer came; nobody knows whether it was done.
    Lost,
    /// It was not sent.
    NotSent,
}

/// Someone who waits for an answer. It is called where answers are read, so that what is passed on later comes
/// after it.
pub(super) type ResponseCallback = Box<dyn FnOnce(PeerResponse<'_>) + Send>;

pub(crate) struct PeerLink {
    pub(super) outgoing: Outgoing,
    /// Nothing once it has ended.
    pending: Mutex<Option<PendingRequests>>,
}

#[derive(Default)]
struct PendingRequests {
    waiting: HashMap<i64, ResponseCallback>,
    last: i64,
}

impl PeerLink {
    /// Introduces the client, and passes on what comes.
    pub(super) fn open(
        rooms: &Arc<ServerState>,
        session: &Arc<Session>,
        connection: Connection,
        introduction: &InitializeParams,
    ) -> Arc<Self> {
        let way = Arc::new(Self {
            outgoing: connection.outgoing,
            pending: Mutex::new(Some(PendingRequests::default())),
        });
        if let Ok(params) = to_raw_value(&numbered(introduction)) {
            way.ask(
                Initialize::NAME,
                &params,
                Box::new(|came| {
                    if let PeerResponse::Error(error) = came {
                        tracing::warn!(error = %error.message, "another process refused a client");
                    }
                }),
            );
        }
        let (rooms, session, carried) = (rooms.clone(), session.clone(), way.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = carried.carry(&rooms, &session, connection.incoming) => {}
                // What is sent from here on would be lost.
                () = carried.outgoing.when_gone() => {}
            }
            carried.outgoing.mark_gone();
            carried.end();
            reattach_all(&rooms, &session, session.relay.left_by(&carried));
        });
        way
    }

    /// Sends a request. Whoever asks is told what became of it.
    pub(super) fn ask(&self, method: &str, params: &RawValue, asker: ResponseCallback) {
        let mut askers = self.askers();
        let Some(open) = &mut *askers else {
            drop(askers);
            return asker(PeerResponse::NotSent);
        };
        open.last += 1;
        match request(&Id::Integer(open.last), method, &params) {
            Ok(frame) => {
                open.waiting.insert(open.last, asker);
                self.outgoing.send(frame);
            }
            Err(error) => {
                drop(askers);
                tracing::error!(method, %error, "a request cannot be written");
                asker(PeerResponse::NotSent);
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.askers().is_none()
    }

    async fn carry(
        self: &Arc<Self>,
        rooms: &Arc<ServerState>,
        session: &Arc<Session>,
        mut incoming: Incoming,
    ) {
        while let Some(frame) = self.next(&mut incoming).await {
            let Frame::Message(frame) = frame else {
                tracing::warn!("a message of another process was too long");
                break;
            };
            let mut is_over = false;
            let mut method = None;
            let thread = match parse(&frame) {
                Ok(Inbound::Response(response)) => {
                    self.answer(response);
                    session.outgoing.wait_below(FORWARDED_BYTES_MAX).await;
                    continue;
                }
                Ok(Inbound::Notification(told)) => {
                    let thread = told.params.and_then(|params| thread_of(params.get()));
                    if told.method == "thread/closed" {
                        // It is no longer there, which is no reason for the client not to hear of it.
                        if let Some(id) = thread.filter(|id| session.relay.is_followed(*id, self)) {
                            let seen = session.relay.forget(id);
                            reattach_all(rooms, session, seen.map(|seen| (id, seen)));
                        }
                        continue;
                    }
                    is_over = matches!(&*told.method, "thread/deleted" | "thread/archived");
                    method = Some(told.method);
                    thread
                }
                Ok(Inbound::Request(asked)) => answers::named(&asked.id).map(|(id, _)| id),
                Err(fault) => {
                    tracing::warn!(?fault, "another process sent what is no message");
                    continue;
                }
            };
            let Some(id) = thread.filter(|id| session.relay.is_followed(*id, self)) else {
                continue;
            };
            let seq = seq_of(&frame);
            let is_numbered = session.client().is_some_and(|it| it.wants_seq);
            let is_wanted = method.is_none_or(|it| session.hears_of(&it));
            if is_wanted {
                session.outgoing.send(match seq {
                    Some(seq) if !is_numbered => without(seq, &frame),
                    _ => frame.clone(),
                });
            }
            session.relay.saw(id, seq);
            if is_over {
                session.relay.forget(id);
            }
            session.outgoing.wait_below(FORWARDED_BYTES_MAX).await;
        }
    }

    /// What comes next. A process that owes an answer, and does not even say that it is there, is taken for gone.
    async fn next(&self, incoming: &mut Incoming) -> Option<Frame> {
        let mut was_asked = false;
        loop {
            match timeout(SILENCE_TIMEOUT, incoming.next()).await {
                Ok(frame) => return frame,
                Err(_) if was_asked => {
                    tracing::warn!("another process does not answer");
                    return None;
                }
                Err(_) if self.is_awaited() => {
                    was_asked = true;
                    if let Ok(nothing) = to_raw_value(&serde_json::json!({})) {
                        self.ask(ThreadLoadedList::NAME, &nothing, Box::new(|_| {}));
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Whether someone waits for an answer.
    fn is_awaited(&self) -> bool {
        self.askers()
            .as_ref()
            .is_some_and(|it| !it.waiting.is_empty())
    }

    fn answer(&self, response: InboundResponse<'_>) {
        let asker = match response.id {
            Id::Integer(id) => self.askers().as_mut().and_then(|it| it.waiting.remove(&id)),
            Id::String(_) => None,
        };
        let Some(asker) = asker else {
            return tracing::warn!(id = %response.id, "another process answers what nobody asked");
        };
        asker(match response.outcome {
            Ok(result) => PeerResponse::Result(result),
            Err(error) => PeerResponse::Error(error),
        });
    }

    /// Nothing more comes.
    fn end(&self) {
        let askers = self.askers().take();
        let waiting = askers.map(|it| it.waiting).unwrap_or_default();
        for asker in waiting.into_values() {
            asker(PeerResponse::Lost);
        }
    }

    fn askers(&self) -> MutexGuard<'_, Option<PendingRequests>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PeerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").finish_non_exhaustive()
    }
}

/// The client as it introduced itself, who is told everything, and the numbers of records besides: whoever passes
/// it on must know where to go on, and leaves out what the client does not want.
fn numbered(introduction: &InitializeParams) -> serde_json::Value {
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

/// The thread that a notification is about.
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
    let about: NotifiedThread = serde_json::from_str(params).ok()?;
    about.thread_id.or(about.thread.map(|thread| thread.id))
}

/// The number of the record that a notification is the last word about.
fn seq_of(frame: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct SeqField {
        seq: Option<u64>,
    }
    let numbered: SeqField = serde_json::from_slice(frame).ok()?;
    numbered.seq
}

/// The same frame for a client that did not ask for numbers. A number is the last member of what it numbers.
fn without(seq: u64, frame: &Bytes) -> Bytes {
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
    fn numbers_are_read_and_taken_away() {
        let told = raddle_rpc::notification("x", &serde_json::json!({"seq": 1}), Some(3), Some(42));
        assert_eq!(seq_of(&told), Some(42));
        let plain = raddle_rpc::notification("x", &serde_json::json!({"seq": 1}), Some(3), None);
        assert_eq!(without(42, &told), plain);
        assert_eq!(seq_of(&plain), None);
    }

    #[test]
    fn a_notification_names_its_thread_in_one_of_two_ways() {
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
