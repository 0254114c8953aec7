//! A request on its way to whoever has its thread.

use std::sync::Arc;

use raddle_core::Seq;
use raddle_protocol::ThreadId;
use raddle_protocol::methods::{ThreadResume, ThreadUnsubscribe};
use raddle_protocol::table::Method;
use raddle_rpc::ErrorObject;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::peer_link::{PeerLink, PeerResponse};
use super::reattach::{enter_lane, reattach_all};
use super::{OWNER_TIMEOUT, ThreadLocation, find, is_elsewhere};
use crate::call::Call;
use crate::gate::run_local;
use crate::lanes::Pass;
use crate::services::ServerState;
use crate::session::Session;
use crate::wire_error::WireError;

/// A request about a thread that is not live here, whatever its method.
pub(crate) trait ForwardedRequest: Send {
    fn method(&self) -> &'static str;
    fn thread(&self) -> ThreadId;
    fn session(&self) -> &Arc<Session>;
    fn params(&self) -> Result<Box<RawValue>, serde_json::Error>;
    /// Whether the client hears of the thread with the answer.
    fn joins(&self) -> bool;
    /// Whether to do it twice is to do it once.
    fn may_come_again(&self) -> bool;
    /// Lets the next request of the lane go.
    fn release_lane(&mut self) -> Option<Pass>;
    /// Has its turn in the lane again.
    fn hold(&mut self, pass: Option<Pass>);
    /// It is handled here.
    fn handle_locally(self: Box<Self>, rooms: &Arc<ServerState>);
    /// It was answered elsewhere.
    fn answer(self: Box<Self>, outcome: Result<&RawValue, ErrorObject>);
    fn refuse(self: Box<Self>, error: WireError);
}

/// A request, and who handles it if it stays.
pub(crate) struct ForwardedCall<M: Method> {
    pub(crate) call: Call<M>,
    pub(crate) thread: ThreadId,
    pub(crate) handle: fn(&Arc<ServerState>, Call<M>),
}

impl<M: Method> ForwardedRequest for ForwardedCall<M> {
    fn method(&self) -> &'static str {
        M::NAME
    }

    fn thread(&self) -> ThreadId {
        self.thread
    }

    fn session(&self) -> &Arc<Session> {
        &self.call.session
    }

    fn params(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let mut params = serde_json::to_value(&self.call.params)?;
        let client = self.call.session.client();
        if client.is_some_and(|it| !it.experimental)
            && let Some(members) = params.as_object_mut()
        {
            // The client did not say these: it would be refused for them.
            members.retain(|name, _| !M::GATED.contains(&name.as_str()));
        }
        to_raw_value(&params)
    }

    fn joins(&self) -> bool {
        let keyed = self.call.reply.idempotency();
        M::NAME == ThreadResume::NAME || keyed.is_some_and(|it| it.creates_thread)
    }

    fn may_come_again(&self) -> bool {
        M::NAME == ThreadResume::NAME || self.call.reply.idempotency().is_some()
    }

    fn release_lane(&mut self) -> Option<Pass> {
        self.call.reply.take_pass()
    }

    fn hold(&mut self, pass: Option<Pass>) {
        self.call.reply.hold(pass);
    }

    fn handle_locally(self: Box<Self>, rooms: &Arc<ServerState>) {
        run_local(rooms, self.call, self.handle);
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

/// Looks for a request's thread, and has it handled there.
pub(crate) fn forward(
    rooms: &Arc<ServerState>,
    passenger: Box<dyn ForwardedRequest>,
    since: Instant,
) {
    tokio::spawn(route(rooms.clone(), passenger, since));
}

/// The same for one that comes back without an answer.
fn forward_again(
    rooms: &Arc<ServerState>,
    mut passenger: Box<dyn ForwardedRequest>,
    since: Instant,
) {
    let (session, id) = (passenger.session().clone(), passenger.thread());
    let all = rooms.clone();
    enter_lane(rooms, &session, id, move |pass| {
        passenger.hold(pass);
        forward(&all, passenger, since);
    });
}

async fn route(rooms: Arc<ServerState>, passenger: Box<dyn ForwardedRequest>, since: Instant) {
    let (session, id) = (passenger.session().clone(), passenger.thread());
    let method = match passenger.joins() {
        true => ThreadResume::NAME,
        false => passenger.method(),
    };
    match find(&rooms, &session, id, method, since).await {
        ThreadLocation::Local => passenger.handle_locally(&rooms),
        ThreadLocation::Unavailable(error) => passenger.refuse(error),
        ThreadLocation::Remote(way) => {
            // Should the way end before a number was passed on, what comes after this record is told.
            let seen = match passenger.params() {
                Ok(params) if passenger.joins() => match known(params.get()) {
                    Some(seen) => seen,
                    None => rooms.threads.head(id).await.unwrap_or(Seq::ZERO),
                },
                _ => Seq::ZERO,
            };
            go(&rooms, passenger, &way, seen, since);
        }
    }
}

/// The last record that a client knows which comes back.
fn known(params: &str) -> Option<Seq> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ResumeCursor {
        after_seq: Option<u64>,
    }
    let back: ResumeCursor = serde_json::from_str(params).ok()?;
    back.after_seq.map(Seq)
}

fn go(
    rooms: &Arc<ServerState>,
    mut passenger: Box<dyn ForwardedRequest>,
    way: &Arc<PeerLink>,
    seen: Seq,
    since: Instant,
) {
    let method = passenger.method();
    let params = match passenger.params() {
        Ok(params) => params,
        Err(error) => return passenger.refuse(WireError::InvalidRequest(error.to_string())),
    };
    // Until it is sent: from there on the other process keeps the order.
    let _lane = passenger.release_lane();
    let (session, id) = (passenger.session().clone(), passenger.thread());
    // Whoever asks to hear of a thread that is on its way home hears of it by that.
    let joins = passenger.joins();
    let homing = joins.then(|| session.relay.reattaching().remove(&id));
    let homing = homing.flatten().map(|seen| (id, seen));
    let (rooms, to) = (rooms.clone(), way.clone());
    way.ask(
        method,
        &params,
        Box::new(move |came| match came {
            PeerResponse::Result(result) => {
                if joins {
                    session.threads().remove(&id);
                    session.relay.follow(id, &to, seen);
                }
                let is_over = method == ThreadUnsubscribe::NAME;
                if is_over && session.relay.forget_from(id, &to).is_none() {
                    // The thread went elsewhere meanwhile, and the client hears of it from there.
                    return forward_again(&rooms, passenger, since);
                }
                passenger.answer(Ok(result));
            }
            // It went on to another process meanwhile, or to nobody.
            PeerResponse::Error(error)
                if is_elsewhere(&error) && since.elapsed() < OWNER_TIMEOUT =>
            {
                let left = session.relay.forget_from(id, &to).map(|seen| (id, seen));
                reattach_all(&rooms, &session, left.or(homing));
                forward_again(&rooms, passenger, since);
            }
            PeerResponse::Error(error) => {
                reattach_all(&rooms, &session, homing);
                passenger.answer(Err(error));
            }
            PeerResponse::NotSent => {
                reattach_all(&rooms, &session, homing);
                forward_again(&rooms, passenger, since);
            }
            PeerResponse::Lost if passenger.may_come_again() => {
                reattach_all(&rooms, &session, homing);
                forward_again(&rooms, passenger, Instant::now());
            }
            PeerResponse::Lost => passenger.refuse(WireError::OwnerLost),
        }),
    );
}
