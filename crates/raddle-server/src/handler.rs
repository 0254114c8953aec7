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

use std::future::{Ready, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use raddle_protocol::table::Method;

use crate::call::{Call, Request};
use crate::services::ServerState;
use crate::wire_error::WireError;

/// A handler of a method. `Form` tells the forms apart; the compiler infers it.
pub(crate) trait Handler<M: Method, Form>: Copy + Send + 'static {
    /// Starts to handle a call. Returns the work that may wait.
    fn start(
        self,
        state: Arc<ServerState>,
        call: Call<M>,
    ) -> Option<impl Future<Output = ()> + Send + 'static>;
}

impl<M, F> Handler<M, ()> for F
where
    M: Method,
    F: Fn(&Arc<ServerState>, Call<M>) + Copy + Send + 'static,
{
    fn start(
        self,
        state: Arc<ServerState>,
        call: Call<M>,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        self(&state, call);
        None::<Ready<()>>
    }
}

impl<M, F, W> Handler<M, Call<M>> for F
where
    M: Method,
    F: Fn(Arc<ServerState>, Call<M>) -> W + Copy + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    fn start(
        self,
        state: Arc<ServerState>,
        call: Call<M>,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        Some(self(state, call))
    }
}

impl<M, F, W> Handler<M, Request<M>> for F
where
    M: Method,
    F: Fn(Arc<ServerState>, Request<M>) -> W + Copy + Send + 'static,
    W: Future<Output = Result<M::Result, WireError>> + Send + 'static,
{
    fn start(
        self,
        state: Arc<ServerState>,
        call: Call<M>,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let Call {
            params,
            reply,
            session,
        } = call;
        let response = self(state, Request { params, session });
        Some(async move { reply.finish(response.await) })
    }
}

/// Starts the handler of a call, in the span of the request. Returns the work that may wait. A
/// panic drops the reply, which answers the request with an error; the connection and all others go
/// on.
pub(crate) fn start<M, Form, H>(
    handler: H,
    state: Arc<ServerState>,
    call: Call<M>,
) -> Option<impl Future<Output = ()> + Send + 'static>
where
    M: Method,
    H: Handler<M, Form>,
{
    let _entered = call.reply.span().clone().entered();
    let connection = call.session.number;
    match catch_unwind(AssertUnwindSafe(|| handler.start(state, call))) {
        Ok(work) => work.map(|work| log_panic(work, M::NAME, connection)),
        Err(_) => {
            panicked(M::NAME, connection);
            None
        }
    }
}

/// Does the work of a handler. A panic ends it, and is logged.
async fn log_panic(work: impl Future<Output = ()>, method: &'static str, connection: u64) {
    let mut work = pin!(work);
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
