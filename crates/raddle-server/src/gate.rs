//! The gate: the one place that decides whether a request is admitted.
//!
//! It checks in this order: has the client sent `initialize`, is the method served, may this client
//! use it, do its params have the right shape. An admitted request becomes a [`Call`] and enters
//! its lane.

mod arrays;
mod bounds;
mod marks;
mod shape;

use std::collections::HashMap;
use std::sync::Arc;

use raddle_protocol::table::{Lane, Method, Resource, Stability};
use raddle_rpc::{ErrorObject, Id, InboundRequest, refusal};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::call::{Call, Reply};
use crate::idempotency::{self, RequestIdentity};
use crate::metrics::RequestOutcome;
use crate::relay::{self, ForwardedCall};
use crate::routes;
use crate::services::ServerState;
use crate::session::{BusyReason, Session};
use crate::wire_error::WireError;

/// The largest params whose faults are explained: an explanation quotes the faulty value.
const EXPLAINED_BYTES_MAX: usize = 16 << 10;

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

    /// Runs the request with the handler of its method.
    pub(crate) fn run<M: Method>(self, handle: fn(&Arc<ServerState>, Call<M>)) {
        if self.session.is_observer() && !M::READS {
            return self.refuse(M::NAME, WireError::Observer);
        }
        let params = match self.read::<M>() {
            Ok(params) => params,
            Err(error) => return self.refuse(M::NAME, error),
        };
        let identity = match RequestIdentity::of::<M>(&params, self.session) {
            Ok(identity) => identity,
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
        let mut reply = Reply::new(id, M::NAME, session.clone());
        reply.set_idempotency(identity);
        let call = Call {
            params,
            reply,
            session: session.clone(),
        };
        let lane_state = state.clone();
        state.lanes.enter(lane, session.number, move |pass| {
            let mut call = call;
            call.reply.hold(pass);
            // No client would read the response. Dropping the call admits the next one of the lane.
            if call.session.is_gone() {
                return;
            }
            match thread {
                Some(id) if relay::may_be_remote(&lane_state, &call.session, id) => {
                    let forwarded = ForwardedCall {
                        call,
                        thread: id,
                        handle,
                    };
                    relay::forward(&lane_state, Box::new(forwarded), Instant::now());
                }
                _ => idempotency::run_once(&lane_state, call, handle),
            }
        });
    }

    fn read<M: Method>(&self) -> Result<M::Params, WireError> {
        let is_experimental = self
            .session
            .client()
            .is_none_or(|client| client.experimental);
        if M::STABILITY == Stability::Experimental && !is_experimental {
            return Err(WireError::Experimental(M::NAME.into()));
        }
        let text = match self.params {
            Some(params) => params.get(),
            None if M::TAKES_PARAMS => {
                return Err(WireError::InvalidRequest("missing field `params`".into()));
            }
            None => "null",
        };
        // Serde would also read types from an array, by the order of their members; `arrays`
        // rejects that.
        if M::TAKES_PARAMS && !text.starts_with('{') {
            let what = "params must be an object".to_owned();
            return Err(WireError::InvalidRequest(what));
        }
        if !marks::are_few(text) {
            let what = format!("params have more than {} values", marks::VALUES_MAX);
            return Err(WireError::InvalidRequest(what));
        }
        if !is_experimental && !M::GATED.is_empty() {
            refuse_gated::<M>(text)?;
        }
        let params = serde_json::from_str(text)
            .map_err(|_| WireError::InvalidRequest(explain::<M::Params>(text)))?;
        bounds::check(M::NAME, text)?;
        arrays::check(text, &params).map_err(WireError::InvalidRequest)?;
        Ok(params)
    }

    fn refuse(self, method: &str, error: WireError) {
        let error = ErrorObject::from(error);
        let outcome = RequestOutcome::Error(error.code);
        self.session.metrics.answered(method, outcome);
        self.session
            .answer(&self.id, refusal(Some(&self.id), &error));
    }
}

/// Rejects params that need an opt-in, unless they are null.
fn refuse_gated<M: Method>(text: &str) -> Result<(), WireError> {
    // Values stay unparsed: one that cannot be parsed must not let the others through.
    let members = serde_json::from_str::<HashMap<String, &RawValue>>(text)
        .map_err(|error| WireError::InvalidRequest(error.to_string()))?;
    match M::GATED.iter().find(|name| {
        members
            .get(**name)
            .is_some_and(|value| value.get() != "null")
    }) {
        Some(name) => Err(WireError::Experimental(format!("{}.{name}", M::NAME))),
        None => Ok(()),
    }
}

/// Says what is wrong with params, and where. Slower than parsing, so only done after a failure.
fn explain<P: serde::de::DeserializeOwned>(text: &str) -> String {
    if text.len() > EXPLAINED_BYTES_MAX {
        return "params have the wrong shape, and are too large to say where".to_owned();
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, P>(&mut reader) {
        Ok(_) => "malformed params".to_owned(),
        Err(error) => {
            let path = error.path().to_string();
            let what = error.into_inner().to_string();
            // The position is relative to params, so it would mislead the client.
            let what = what
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned();
            if path == "." {
                what
            } else {
                format!("{path}: {what}")
            }
        }
    }
}
