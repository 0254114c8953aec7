//! The forms of a handler: how the gate starts one, and whether its work waits.
//!
//! - `async fn(Arc<ServerState>, Request<M>) -> Result<M::Result, WireError>`: it answers with what
//!   it returns.
//! - `async fn(Arc<ServerState>, Call<M>)`: it passes its reply on to a thread, or orders the
//!   response against other messages or against a reservation.
//! - `fn(&Arc<ServerState>, Call<M>)`: it waits for nothing, or must begin in the order of arrival.
//!
//! The work of an `async fn` runs on a task of its own. A plain `fn` runs where the call left its
//! lane, which is the task of the connection if the lane was free: it must not block.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use raddle_core::ports::BoxFuture;
use raddle_protocol::table::Method;
use serde_json::value::{RawValue, to_raw_value};

use crate::call::{AdmittedCall, Call, HandledCall, PendingResponse, Reply, Request};
use crate::services::ServerState;
use crate::wire_error::WireError;

/// A handler of a method. `Form` tells the forms apart; the compiler infers it.
pub(crate) trait Handler<M: Method, Form>: Copy + Send + 'static {
    /// Starts to handle a call. Returns the work that may wait.
    fn start(self, state: Arc<ServerState>, call: Call<M>) -> Option<BoxFuture<'static, ()>>;
}

impl<M, F> Handler<M, ()> for F
where
    M: Method,
    F: Fn(&Arc<ServerState>, Call<M>) + Copy + Send + 'static,
{
    fn start(self, state: Arc<ServerState>, call: Call<M>) -> Option<BoxFuture<'static, ()>> {
        self(&state, call);
        None
    }
}

impl<M, F, W> Handler<M, Call<M>> for F
where
    M: Method,
    F: Fn(Arc<ServerState>, Call<M>) -> W + Copy + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    fn start(self, state: Arc<ServerState>, call: Call<M>) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(self(state, call)))
    }
}

impl<M, F, W> Handler<M, Request<M>> for F
where
    M: Method,
    F: Fn(Arc<ServerState>, Request<M>) -> W + Copy + Send + 'static,
    W: Future<Output = Result<M::Result, WireError>> + Send + 'static,
{
    fn start(self, state: Arc<ServerState>, call: Call<M>) -> Option<BoxFuture<'static, ()>> {
        let Call {
            params,
            reply,
            session,
        } = call;
        let response = self(state, Request { params, session });
        Some(Box::pin(async move { reply.finish(response.await) }))
    }
}

/// The params of a call and its handler.
pub(crate) struct TypedCall<M: Method, Form, H> {
    pub(crate) params: M::Params,
    pub(crate) handler: H,
    pub(crate) form: PhantomData<fn(Form)>,
}

impl<M, Form, H> HandledCall for TypedCall<M, Form, H>
where
    M: Method,
    Form: 'static,
    H: Handler<M, Form>,
{
    fn params(&mut self, with_gated: bool) -> Result<Box<RawValue>, serde_json::Error> {
        let mut params = serde_json::to_value(&self.params)?;
        if !with_gated && let Some(members) = params.as_object_mut() {
            members.retain(|name, _| !M::GATED.contains(&name.as_str()));
        }
        to_raw_value(&params)
    }

    fn start(
        self: Box<Self>,
        state: Arc<ServerState>,
        pending: PendingResponse,
    ) -> Option<BoxFuture<'static, ()>> {
        let session = pending.session().clone();
        let call = Call {
            params: self.params,
            reply: Reply::from(pending),
            session,
        };
        self.handler.start(state, call)
    }
}

/// Starts the handler of a call, in the span of the request. Returns the work that may wait. A
/// panic drops the reply, which answers the request with an error; the connection and all others go
/// on.
pub(crate) fn start(
    state: Arc<ServerState>,
    call: AdmittedCall,
) -> Option<impl Future<Output = ()> + Send + 'static> {
    let AdmittedCall {
        method,
        pending,
        handled,
        ..
    } = call;
    let _entered = pending.span().clone().entered();
    let connection = pending.session().number;
    match catch_unwind(AssertUnwindSafe(|| handled.start(state, pending))) {
        Ok(work) => work.map(|work| log_panic(work, method, connection)),
        Err(_) => {
            panicked(method, connection);
            None
        }
    }
}

/// Does the work of a handler. A panic ends it, and is logged.
async fn log_panic(mut work: BoxFuture<'static, ()>, method: &'static str, connection: u64) {
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            panicked(method, connection);
            Poll::Ready(())
        })
    })
    .await;
}

fn panicked(method: &'static str, connection: u64) {
    tracing::error!(connection, method, "a handler panicked");
}
