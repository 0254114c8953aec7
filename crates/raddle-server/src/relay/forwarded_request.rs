//! A request on its way to the process that owns its thread.

use std::sync::Arc;

use raddle_core::Seq;
use raddle_protocol::ThreadId;
use raddle_protocol::methods::{ThreadResume, ThreadUnsubscribe};
use raddle_protocol::table::{Method, ServedBy};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::links::{PeerLink, PeerResponse};
use super::reattach::{enter_lane, reattach_all};
use super::{ThreadLocation, find, is_elsewhere};
use crate::call::{AdmittedCall, PendingResponse};
use crate::services::ServerState;
use crate::wire_error::WireError;

/// Returns a call that this process serves. If another process has the thread, that process answers
/// the call, and this returns nothing.
pub(crate) async fn route(
    state: &Arc<ServerState>,
    call: AdmittedCall,
    id: ThreadId,
) -> Option<AdmittedCall> {
    let AdmittedCall {
        method,
        served_by,
        thread,
        mut pending,
        mut handled,
    } = call;
    let session = pending.session().clone();
    let identity = pending.idempotency();
    let is_resume = method == ThreadResume::NAME;
    let is_idempotent = is_resume || identity.is_some();
    let subscribes = is_resume || identity.is_some_and(|it| it.creates_thread);
    // A request that creates this thread and was sent before may find it with another owner.
    let location = match subscribes {
        true => ServedBy::Owner,
        false => served_by,
    };
    let mut since = Instant::now();
    loop {
        let link = match find(state, &session, id, location, since).await {
            ThreadLocation::Local => {
                return Some(AdmittedCall {
                    method,
                    served_by,
                    thread,
                    pending,
                    handled,
                });
            }
            ThreadLocation::Unavailable(error) => {
                pending.error(error);
                return None;
            }
            ThreadLocation::Remote(link) => link,
        };
        // The other process would reject a client without the opt-in for members that it did not
        // set.
        let with_gated = session.client().is_none_or(|it| it.experimental);
        let params = match handled.params(with_gated) {
            Ok(params) => params,
            Err(error) => {
                pending.error(WireError::InvalidRequest(error.to_string()));
                return None;
            }
        };
        let request = ForwardedRequest {
            method,
            params,
            thread: id,
            subscribes,
            is_idempotent,
            pending,
            since,
        };
        let returned = request.forward(state, &link).await?;
        pending = returned.pending;
        since = returned.since;
    }
}

/// A request in the form that another process receives, whatever its method.
struct ForwardedRequest {
    method: &'static str,
    params: Box<RawValue>,
    thread: ThreadId,
    /// Whether a successful response subscribes the client to the thread.
    subscribes: bool,
    /// Whether the request is idempotent, so that it may be sent twice.
    is_idempotent: bool,
    pending: PendingResponse,
    /// Start of the search for the owner of the thread.
    since: Instant,
}

/// A request that another process did not answer.
struct ReturnedRequest {
    /// Holds its lane again.
    pending: PendingResponse,
    since: Instant,
}

impl ForwardedRequest {
    /// Sends the request to the process that has its thread. The response of that process is sent
    /// where responses are read, so that events forwarded later follow it. Returns the request if
    /// it comes back without a response, when it holds its lane again.
    async fn forward(
        self,
        state: &Arc<ServerState>,
        link: &Arc<PeerLink>,
    ) -> Option<ReturnedRequest> {
        let last_seq = self.last_seq(state).await;
        let Self {
            method,
            params,
            thread: id,
            subscribes,
            is_idempotent,
            mut pending,
            since,
        } = self;
        let session = pending.session().clone();
        // Held until the request is sent; the other process keeps the order from there on.
        let lane = pending.take_pass();
        // A request that subscribes to a thread replaces the reattachment that is in progress.
        let reattaching = subscribes.then(|| session.relay.reattaching().remove(&id));
        let reattaching = reattaching.flatten().map(|last_seq| (id, last_seq));
        let (returned, returning) = oneshot::channel();
        let (state, target) = (state.clone(), link.clone());
        let take_over_max = state.threads.timeouts().take_over;
        link.send_request(
            method,
            &params,
            Box::new(move |response| {
                // Enters the lane here and not later: returned requests keep their order.
                let return_request = |mut pending: PendingResponse, since| {
                    enter_lane(&state, &session, id, move |pass| {
                        pending.hold(pass);
                        let _ = returned.send(ReturnedRequest { pending, since });
                    });
                };
                match response {
                    PeerResponse::Result(result) => {
                        if subscribes {
                            session.threads().remove(&id);
                            session.relay.subscribe(id, &target, last_seq);
                        }
                        let is_unsubscribe = method == ThreadUnsubscribe::NAME;
                        if is_unsubscribe && session.relay.forget_from(id, &target).is_none() {
                            // The thread moved meanwhile, and the client receives its events from
                            // there.
                            return return_request(pending, since);
                        }
                        if is_unsubscribe {
                            session.end_subscription(id);
                        }
                        pending.written(result);
                    }
                    // Another process owns the thread by now, or none does.
                    PeerResponse::Error(error)
                        if is_elsewhere(&error) && since.elapsed() < take_over_max =>
                    {
                        let ended = session
                            .relay
                            .forget_from(id, &target)
                            .map(|last_seq| (id, last_seq));
                        reattach_all(&state, &session, ended.or(reattaching));
                        return_request(pending, since);
                    }
                    PeerResponse::Error(error) => {
                        reattach_all(&state, &session, reattaching);
                        pending.refused(&error);
                    }
                    PeerResponse::NotSent => {
                        reattach_all(&state, &session, reattaching);
                        return_request(pending, since);
                    }
                    PeerResponse::Lost if is_idempotent => {
                        reattach_all(&state, &session, reattaching);
                        return_request(pending, Instant::now());
                    }
                    PeerResponse::Lost => pending.error(WireError::OwnerLost),
                }
            }),
        );
        drop((lane, params));
        returning.await.ok()
    }

    /// Returns the record after which the subscription continues if the link ends before any
    /// sequence number arrived.
    async fn last_seq(&self, state: &ServerState) -> Seq {
        if !self.subscribes {
            return Seq::ZERO;
        }
        match resume_cursor(self.params.get()) {
            Some(last_seq) => last_seq,
            None => state.threads.head(self.thread).await.unwrap_or(Seq::ZERO),
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
