//! A request on its way to the process that owns its thread.

use std::sync::Arc;

use raddle_core::Seq;
use raddle_protocol::ThreadId;
use raddle_protocol::methods::{ThreadResume, ThreadUnsubscribe};
use raddle_protocol::table::{Method, ServedBy};
use raddle_rpc::ErrorObject;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::links::{PeerLink, PeerResponse};
use super::reattach::{enter_lane, reattach_all};
use super::{OWNER_TIMEOUT, ThreadLocation, find, is_elsewhere};
use crate::call::Call;
use crate::idempotency::run_once;
use crate::lanes::Pass;
use crate::services::ServerState;
use crate::session::Session;
use crate::wire_error::WireError;

/// A request about a thread that is not live here, whatever its method.
pub(crate) trait ForwardedRequest: Send {
    fn method(&self) -> &'static str;
    fn served_by(&self) -> ServedBy;
    fn thread(&self) -> ThreadId;
    fn session(&self) -> &Arc<Session>;
    /// Span of the request, for the log.
    fn span(&self) -> &Span;
    fn params(&self) -> Result<Box<RawValue>, serde_json::Error>;
    /// Whether a successful response subscribes the client to the thread.
    fn subscribes(&self) -> bool;
    /// Whether the request is idempotent, so that it may be sent twice.
    fn is_idempotent(&self) -> bool;
    /// Releases the lane, so that its next request may run.
    fn release_lane(&mut self) -> Option<Pass>;
    /// Holds the lane again.
    fn hold(&mut self, pass: Option<Pass>);
    /// Runs the request in this process.
    fn handle_locally(self: Box<Self>, state: &Arc<ServerState>);
    /// Responds with the outcome from the other process.
    fn answer(self: Box<Self>, outcome: Result<&RawValue, ErrorObject>);
    fn refuse(self: Box<Self>, error: WireError);
}

/// A request, and its handler if it runs in this process.
pub(crate) struct ForwardedCall<M: Method> {
    pub(crate) call: Call<M>,
    pub(crate) thread: ThreadId,
    pub(crate) handle: fn(&Arc<ServerState>, Call<M>),
}

impl<M: Method> ForwardedRequest for ForwardedCall<M> {
    fn method(&self) -> &'static str {
        M::NAME
    }

    fn served_by(&self) -> ServedBy {
        M::SERVED_BY
    }

    fn thread(&self) -> ThreadId {
        self.thread
    }

    fn session(&self) -> &Arc<Session> {
        &self.call.session
    }

    fn span(&self) -> &Span {
        self.call.reply.span()
    }

    fn params(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let mut params = serde_json::to_value(&self.call.params)?;
        let client = self.call.session.client();
        if client.is_some_and(|it| !it.experimental)
            && let Some(members) = params.as_object_mut()
        {
            // The client did not set these; the other process would reject it for them.
            members.retain(|name, _| !M::GATED.contains(&name.as_str()));
        }
        to_raw_value(&params)
    }

    fn subscribes(&self) -> bool {
        let identity = self.call.reply.idempotency();
        M::NAME == ThreadResume::NAME || identity.is_some_and(|it| it.creates_thread)
    }

    fn is_idempotent(&self) -> bool {
        M::NAME == ThreadResume::NAME || self.call.reply.idempotency().is_some()
    }

    fn release_lane(&mut self) -> Option<Pass> {
        self.call.reply.take_pass()
    }

    fn hold(&mut self, pass: Option<Pass>) {
        self.call.reply.hold(pass);
    }

    fn handle_locally(self: Box<Self>, state: &Arc<ServerState>) {
        run_once(state, self.call, self.handle);
    }

    fn answer(self: Box<Self>, outcome: Result<&RawValue, ErrorObject>) {
        match outcome {
            Ok(result) => self.call.reply.written(result),
            Err(error) => self.call.reply.refused(&error),
        }
    }

    fn refuse(self: Box<Self>, error: WireError) {
        self.call.reply.error(error);
    }
}

/// Locates a request's thread, and forwards the request there.
pub(crate) fn forward(
    state: &Arc<ServerState>,
    request: Box<dyn ForwardedRequest>,
    since: Instant,
) {
    let span = request.span().clone();
    tokio::spawn(route(state.clone(), request, since).instrument(span));
}

/// Forwards a request again that returned without a response.
fn forward_again(state: &Arc<ServerState>, mut request: Box<dyn ForwardedRequest>, since: Instant) {
    let (session, id) = (request.session().clone(), request.thread());
    let lane_state = state.clone();
    enter_lane(state, &session, id, move |pass| {
        request.hold(pass);
        forward(&lane_state, request, since);
    });
}

async fn route(state: Arc<ServerState>, request: Box<dyn ForwardedRequest>, since: Instant) {
    let (session, id) = (request.session().clone(), request.thread());
    // A request that creates this thread and was sent before may find it with another owner.
    let served_by = match request.subscribes() {
        true => ServedBy::Owner,
        false => request.served_by(),
    };
    match find(&state, &session, id, served_by, since).await {
        ThreadLocation::Local => request.handle_locally(&state),
        ThreadLocation::Unavailable(error) => request.refuse(error),
        ThreadLocation::Remote(link) => {
            // Subscriptions continue after this record if the link ends before any sequence number
            // arrived.
            let last_seq = match request.params() {
                Ok(params) if request.subscribes() => match resume_cursor(params.get()) {
                    Some(last_seq) => last_seq,
                    None => state.threads.head(id).await.unwrap_or(Seq::ZERO),
                },
                _ => Seq::ZERO,
            };
            send(&state, request, &link, last_seq, since);
        }
    }
}

/// Returns the last record that a resuming client knows.
fn resume_cursor(params: &str) -> Option<Seq> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ResumeCursor {
        after_seq: Option<u64>,
    }
    let cursor: ResumeCursor = serde_json::from_str(params).ok()?;
    cursor.after_seq.map(Seq)
}

fn send(
    state: &Arc<ServerState>,
    mut request: Box<dyn ForwardedRequest>,
    link: &Arc<PeerLink>,
    last_seq: Seq,
    since: Instant,
) {
    let method = request.method();
    let params = match request.params() {
        Ok(params) => params,
        Err(error) => return request.refuse(WireError::InvalidRequest(error.to_string())),
    };
    // Held until the request is sent; the other process keeps the order from there on.
    let _lane = request.release_lane();
    let (session, id) = (request.session().clone(), request.thread());
    // A request that subscribes to a thread replaces the reattachment that is in progress.
    let subscribes = request.subscribes();
    let reattaching = subscribes.then(|| session.relay.reattaching().remove(&id));
    let reattaching = reattaching.flatten().map(|last_seq| (id, last_seq));
    let (state, target) = (state.clone(), link.clone());
    link.send_request(
        method,
        &params,
        Box::new(move |response| match response {
            PeerResponse::Result(result) => {
                if subscribes {
                    session.threads().remove(&id);
                    session.relay.subscribe(id, &target, last_seq);
                }
                let is_unsubscribe = method == ThreadUnsubscribe::NAME;
                if is_unsubscribe && session.relay.forget_from(id, &target).is_none() {
                    // The thread moved meanwhile, and the client receives its events from there.
                    return forward_again(&state, request, since);
                }
                request.answer(Ok(result));
            }
            // Another process owns the thread by now, or none does.
            PeerResponse::Error(error)
                if is_elsewhere(&error) && since.elapsed() < OWNER_TIMEOUT =>
            {
                let ended = session
                    .relay
                    .forget_from(id, &target)
                    .map(|last_seq| (id, last_seq));
                reattach_all(&state, &session, ended.or(reattaching));
                forward_again(&state, request, since);
            }
            PeerResponse::Error(error) => {
                reattach_all(&state, &session, reattaching);
                request.answer(Err(error));
            }
            PeerResponse::NotSent => {
                reattach_all(&state, &session, reattaching);
                forward_again(&state, request, since);
            }
            PeerResponse::Lost if request.is_idempotent() => {
                reattach_all(&state, &session, reattaching);
                forward_again(&state, request, Instant::now());
            }
            PeerResponse::Lost => request.refuse(WireError::OwnerLost),
        }),
    );
}
