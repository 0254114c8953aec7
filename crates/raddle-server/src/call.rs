//! A request on its way through the server, and the one response it must get.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;
use raddle_agent::{AppliedCommand, CommandResult, ReplyTo};
use raddle_core::ports::BoxFuture;
use raddle_core::{self as core, RenderResponse};
use raddle_protocol::ThreadId;
use raddle_protocol::table::{Method, ServedBy};
use raddle_rpc::{ErrorObject, Id, answer, refusal};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tracing::Span;

use crate::disk::DiskExecutor;
use crate::idempotency::RequestIdentity;
use crate::lanes::Pass;
use crate::metrics::RequestOutcome;
use crate::services::ServerState;
use crate::session::Session;
use crate::spans;
use crate::wire_error::WireError;

/// A request that passed the gate.
#[derive(Debug)]
pub(crate) struct Call<M: Method> {
    pub(crate) params: M::Params,
    pub(crate) reply: Reply<M::Result>,
    /// The session of the client that sent the request.
    pub(crate) session: Arc<Session>,
}

/// A request that passed the gate, without its reply: the handler returns the response.
#[derive(Debug)]
pub(crate) struct Request<M: Method> {
    pub(crate) params: M::Params,
    /// The session of the client that sent the request.
    pub(crate) session: Arc<Session>,
}

/// A call of any method, as the stages before its handler see it.
pub(crate) struct AdmittedCall {
    pub(crate) method: &'static str,
    pub(crate) served_by: ServedBy,
    /// The thread that the call is about.
    pub(crate) thread: Option<ThreadId>,
    pub(crate) pending: PendingResponse,
    pub(crate) handled: Box<dyn HandledCall>,
}

/// The params of a call and its handler.
pub(crate) trait HandledCall: Send {
    /// Returns the params for another process, with or without those that need an opt-in.
    fn params(&mut self, with_gated: bool) -> Result<Box<RawValue>, serde_json::Error>;

    /// Starts the handler. Returns the work that may wait.
    fn start(
        self: Box<Self>,
        state: Arc<ServerState>,
        pending: PendingResponse,
    ) -> Option<BoxFuture<'static, ()>>;
}

impl<M: Method> Call<M> {
    /// Runs the work on a thread that may block on the disk, and responds with the result.
    pub(crate) async fn on_disk<F>(self, work: F)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
    {
        let disk = self.session.disk.clone();
        self.on(&disk, work, || {}).await;
    }

    /// Like [`Self::on_disk`], for files in the server's own home. All connections share these
    /// threads, so a connection whose own threads all block does not hold up the configuration's
    /// lane. `after` runs once the response is sent.
    pub(crate) async fn at_home<F, A>(self, state: Arc<ServerState>, work: F, after: A)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
        A: FnOnce() + Send + 'static,
    {
        let home = state.home.clone();
        // The server may end while the work waits for the disk.
        drop(state);
        self.on(&home, work, after).await;
    }

    async fn on<F, A>(self, disk: &DiskExecutor, work: F, after: A)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
        A: FnOnce() + Send + 'static,
    {
        let Self {
            params,
            reply,
            session,
        } = self;
        let permit = match disk.acquire(&session.outgoing).await {
            Ok(permit) => permit,
            Err(error) => return reply.error(error),
        };
        // Responds on that thread, because serialising a long response takes time too.
        let responding = move || {
            reply.finish(work(params));
            after();
        };
        let _ = permit.run(responding).await;
    }
}

/// The pending response to a request, with the type of its result. Responding consumes it; dropping
/// it responds with an error, so every request gets exactly one response.
///
/// It dereferences to the [`PendingResponse`], which has the parts without the type.
#[derive(Debug)]
pub(crate) struct Reply<R> {
    pending: PendingResponse,
    result: PhantomData<fn(R)>,
}

impl<R: Serialize> Reply<R> {
    pub(crate) fn ok(self, result: &R) {
        let frame = answer(&self.pending.id, result);
        self.pending.send(frame, RequestOutcome::Result);
    }

    /// Turns this into the reply callback of a command. If the client may retry the request, the
    /// thread stores the response that `show` renders together with the command's records.
    pub(crate) fn into_reply_to<F>(self, show: F) -> ReplyTo
    where
        F: Fn(CommandResult<'_>) -> Result<R, WireError> + Send + Sync + 'static,
        R: 'static,
    {
        self.into_reply_to_with(show, Self::finish)
    }

    fn into_reply_to_with<F, G>(mut self, show: F, finish: G) -> ReplyTo
    where
        F: Fn(CommandResult<'_>) -> Result<R, WireError> + Send + Sync + 'static,
        G: FnOnce(Self, Result<R, WireError>) + Send + 'static,
        R: 'static,
    {
        let Some(idempotency) = self.take_idempotency() else {
            return ReplyTo::from(move |done: CommandResult<'_>| finish(self, show(done)));
        };
        let show = Arc::new(show);
        let rendered = show.clone();
        let render_response = RenderResponse::new(move |outcome, thread| {
            let outcome = outcome.clone();
            let result = rendered(Ok(AppliedCommand { outcome, thread })).ok()?;
            serde_json::to_string(&result).ok()
        });
        let reply = move |done: CommandResult<'_>| match done {
            Ok(AppliedCommand {
                outcome: core::CommandOutcome::Kept { answer },
                ..
            }) => self.pending.send_stored(answer),
            done => finish(self, show(done)),
        };
        let render_response = Some(render_response);
        ReplyTo::idempotent(
            reply,
            core::IdempotentRequest {
                render: render_response,
                ..idempotency
            },
        )
    }

    /// Like [`Self::into_reply_to`]. If the command fails, the receiver gets this reply with the
    /// error, so that the handler can undo its own work before it responds.
    pub(crate) fn into_reply_to_or_failure<F>(
        self,
        show: F,
    ) -> (ReplyTo, oneshot::Receiver<(Self, WireError)>)
    where
        F: Fn(CommandResult<'_>) -> Result<R, WireError> + Send + Sync + 'static,
        R: 'static,
    {
        let (failed, failure) = oneshot::channel();
        let finish = move |reply: Self, result: Result<R, WireError>| match result {
            Ok(result) => reply.ok(&result),
            Err(error) => {
                if let Err((reply, error)) = failed.send((reply, error)) {
                    reply.error(error);
                }
            }
        };
        (self.into_reply_to_with(show, finish), failure)
    }

    pub(crate) fn finish(self, outcome: Result<R, WireError>) {
        match outcome {
            Ok(result) => self.ok(&result),
            Err(error) => self.error(error),
        }
    }
}

impl<R> Reply<R> {
    /// Responds with a result that is already serialised.
    pub(crate) fn written(self, result: &RawValue) {
        self.pending.written(result);
    }

    pub(crate) fn error(self, error: WireError) {
        self.pending.error(error);
    }
}

impl<R> From<PendingResponse> for Reply<R> {
    fn from(pending: PendingResponse) -> Self {
        Self {
            pending,
            result: PhantomData,
        }
    }
}

impl<R> Deref for Reply<R> {
    type Target = PendingResponse;

    fn deref(&self) -> &PendingResponse {
        &self.pending
    }
}

impl<R> DerefMut for Reply<R> {
    fn deref_mut(&mut self) -> &mut PendingResponse {
        &mut self.pending
    }
}

/// The pending response to a request of any method.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    id: Id,
    method: &'static str,
    session: Arc<Session>,
    /// Span of the request, for the log.
    span: Span,
    /// Admits the next request of the lane when this one is answered.
    pass: Option<Pass>,
    /// Identity of the request, if the client may retry it.
    idempotency: Option<Box<RequestIdentity>>,
    answered: bool,
}

impl PendingResponse {
    pub(crate) fn new(
        id: Id,
        method: &'static str,
        session: Arc<Session>,
        idempotency: Option<Box<RequestIdentity>>,
    ) -> Self {
        let span = spans::request(&session.span, method, &id);
        Self {
            id,
            method,
            session,
            span,
            pass: None,
            idempotency,
            answered: false,
        }
    }

    /// Returns the session that gets the response.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Returns the span of the request.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// Returns the identity of the request, if the client may retry it.
    pub(crate) fn idempotency(&self) -> Option<&RequestIdentity> {
        self.idempotency.as_deref()
    }

    /// Marks the thread that the request creates as already created.
    pub(crate) fn mark_thread_created(&mut self) {
        if let Some(identity) = &mut self.idempotency {
            identity.thread_exists = true;
        }
    }

    /// Takes the idempotency key and hash that the thread stores for the request.
    pub(crate) fn take_idempotency(&mut self) -> Option<core::IdempotentRequest> {
        let identity = self.idempotency.take()?;
        Some(core::IdempotentRequest {
            key: identity.key,
            request_hash: identity.request_hash,
            render: None,
        })
    }

    pub(crate) fn hold(&mut self, pass: Option<Pass>) {
        self.pass = pass;
    }

    /// Takes the lane pass, so that the next request of the lane may run before this one is
    /// answered: dropping the pass admits it.
    pub(crate) fn take_pass(&mut self) -> Option<Pass> {
        self.pass.take()
    }

    /// Responds with a result that is already serialised.
    pub(crate) fn written(self, result: &RawValue) {
        let frame = answer(&self.id, &result);
        self.send(frame, RequestOutcome::Result);
    }

    /// Responds with the stored result of an earlier request with the same key.
    pub(crate) fn send_stored(self, answer: String) {
        match RawValue::from_string(answer) {
            Ok(answer) => self.written(&answer),
            Err(_) => self.error(WireError::Dropped),
        }
    }

    pub(crate) fn error(self, error: WireError) {
        self.refused(&ErrorObject::from(error));
    }

    /// Responds with an error that is already in its wire form.
    pub(crate) fn refused(self, error: &ErrorObject) {
        let frame = refusal(Some(&self.id), error);
        self.send(frame, RequestOutcome::Error(error.code));
    }

    fn send(mut self, frame: Bytes, outcome: RequestOutcome) {
        self.answered = true;
        self.session.metrics.answered(self.method, outcome);
        self.session.answer(&self.id, frame);
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if !self.answered {
            let error = ErrorObject::from(WireError::Dropped);
            let outcome = RequestOutcome::Error(error.code);
            self.session.metrics.answered(self.method, outcome);
            self.session
                .answer(&self.id, refusal(Some(&self.id), &error));
        }
    }
}
