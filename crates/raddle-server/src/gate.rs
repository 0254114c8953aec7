//! The gate: the one entry of requests, and the path of each request to its handler.
//!
//! 1. Admission: the id is free, the client has sent `initialize`, the server serves the method,
//!    and this client may use it.
//! 2. Params: they have the right shape. From here on the request is an [`AdmittedCall`].
//! 3. Lane: the call waits for earlier calls on its resource.
//! 4. Location: a call about a thread of another process is answered from there.
//! 5. Replay: a call that ran before is answered with its stored response.
//! 6. Handler.
//!
//! No stage calls the next one. A stage returns the call, or nothing once the call is answered.

mod arrays;
mod bounds;
mod params;
mod shape;

use std::marker::PhantomData;
use std::sync::Arc;

use raddle_protocol::ThreadId;
use raddle_protocol::methods::TurnInterrupt;
use raddle_protocol::table::{Lane, Method, Resource};
use raddle_rpc::{ErrorObject, Id, InboundRequest, refusal};
use serde_json::value::RawValue;
use tracing::Instrument;

use crate::call::{AdmittedCall, PendingResponse};
use crate::handler::{self, Handler, TypedCall};
use crate::idempotency::{self, RequestIdentity};
use crate::metrics::RequestOutcome;
use crate::relay;
use crate::routes;
use crate::services::ServerState;
use crate::session::{BusyReason, Session};
use crate::wire_error::WireError;

/// Admits a request of this many bytes, or answers it with an error.
pub(crate) fn admit(
    request: InboundRequest<'_>,
    bytes: usize,
    state: &Arc<ServerState>,
    session: &Arc<Session>,
) {
    let InboundRequest { id, method, params } = request;
    if let Err(busy) = session.begin(&id, bytes) {
        let error = match busy {
            BusyReason::SameId => WireError::IdInUse(id.clone()),
            BusyReason::TooMany => WireError::Overloaded,
        };
        session.counts.refused();
        let error = ErrorObject::from(error);
        let outcome = RequestOutcome::Error(error.code);
        session.metrics.answered(&method, outcome);
        session.outgoing.send(refusal(Some(&id), &error));
        return;
    }
    let admission = Admission {
        state,
        session,
        id,
        params,
    };
    if session.client().is_none() && method != "initialize" {
        return admission.refuse(&method, WireError::NotInitialized);
    }
    routes::dispatch(&method, admission);
}

/// A request between the gate and its handler.
pub(crate) struct Admission<'a> {
    state: &'a Arc<ServerState>,
    session: &'a Arc<Session>,
    id: Id,
    params: Option<&'a RawValue>,
}

impl Admission<'_> {
    /// Rejects a method that the server does not have.
    pub(crate) fn unknown(self, method: &str) {
        let error = WireError::UnknownMethod(method.into());
        self.refuse(method, error);
    }

    /// Reads the request as a call, which runs with its handler when its lane admits it.
    pub(crate) fn run<M, Form, H>(self, handler: H)
    where
        M: Method,
        Form: 'static,
        H: Handler<M, Form>,
    {
        let (params, identity) = match self.read::<M>() {
            Ok(read) => read,
            Err(error) => return self.refuse(M::NAME, error),
        };
        let Self {
            state, session, id, ..
        } = self;
        let mut lane = M::lane(&params);
        let mut thread = match lane {
            Lane::Exclusive(Resource::Thread(id)) => Some(id),
            _ => None,
        };
        if let Some(identity) = &identity {
            lane = identity.lane(lane);
            thread = Some(identity.thread);
        }
        let mut call = AdmittedCall {
            method: M::NAME,
            served_by: M::SERVED_BY,
            thread,
            pending: PendingResponse::new(id, M::NAME, session.clone(), identity),
            handled: Box::new(TypedCall::<M, Form, H> {
                params,
                handler,
                form: PhantomData,
            }),
        };
        let interrupted = thread.filter(|_| M::NAME == TurnInterrupt::NAME);
        let waiting = interrupted.map(|id| state.threads.interrupt_hooks(id));
        let lane_state = state.clone();
        state.lanes.enter(lane, session.number, move |pass| {
            drop(waiting);
            call.pending.hold(pass);
            run(lane_state, call);
        });
    }

    /// Returns the params, and the identity of a request that the client may retry.
    fn read<M: Method>(&self) -> Result<(M::Params, Option<Box<RequestIdentity>>), WireError> {
        if self.session.is_observer() && !M::READS {
            return Err(WireError::Observer);
        }
        let params = params::read::<M>(self.params, self.session)?;
        let identity = RequestIdentity::of::<M>(&params, self.session)?;
        Ok((params, identity))
    }

    fn refuse(self, method: &str, error: WireError) {
        let error = ErrorObject::from(error);
        let outcome = RequestOutcome::Error(error.code);
        self.session.metrics.answered(method, outcome);
        self.session
            .answer(&self.id, refusal(Some(&self.id), &error));
    }
}

/// Runs a call that holds its lane: the stages that do not wait here, the rest on one task.
fn run(state: Arc<ServerState>, call: AdmittedCall) {
    let session = call.pending.session();
    // No client would read the response. Dropping the call admits the next one of the lane.
    if session.is_gone() {
        return;
    }
    let is_remote = |id: &ThreadId| relay::may_be_remote(&state, session, *id);
    let remote = call.thread.filter(is_remote);
    let span = call.pending.span().clone();
    if remote.is_none() && call.pending.idempotency().is_none() {
        if let Some(work) = handler::start(state, call) {
            tokio::spawn(work.instrument(span));
        }
        return;
    }
    let stages = async move {
        let mut call = call;
        if let Some(id) = remote {
            call = relay::route(&state, call, id).await?;
        }
        call = idempotency::replay(&state, call).await?;
        handler::start(state, call)?.await;
        Some(())
    };
    tokio::spawn(stages.instrument(span));
}
