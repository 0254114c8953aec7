//! A request on its way through the rooms, and the one answer it is owed.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use raddle_agent::{AppliedCommand, CommandResult, ReplyTo};
use raddle_core::{self as order, RenderResponse};
use raddle_protocol::table::Method;
use raddle_rpc::{ErrorObject, Id, answer, refusal};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::disk::DiskExecutor;
use crate::idempotency::RequestIdentity;
use crate::lanes::Pass;
use crate::metrics::RequestOutcome;
use crate::services::ServerState;
use crate::session::Session;
use crate::wire_error::WireError;

/// A request that passed the gate.
#[derive(Debug)]
pub(crate) struct Call<M: Method> {
    pub(crate) params: M::Params,
    pub(crate) reply: Reply<M::Result>,
    /// Who asks.
    pub(crate) session: Arc<Session>,
}

impl<M: Method> Call<M> {
    /// Does the work on a thread that may wait for the disk, and answers with what comes of it.
    pub(crate) fn on_disk<F>(self, work: F)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
    {
        let disk = self.session.disk.clone();
        self.on(disk, work);
    }

    /// The same for what is in the server's own home. All connections share these threads, so that one
    /// whose own are all waiting does not stand in the configuration's lane with them.
    pub(crate) fn at_home<F>(self, rooms: &ServerState, work: F)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
    {
        self.on(rooms.home.clone(), work);
    }

    fn on<F>(self, disk: DiskExecutor, work: F)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
    {
        let Self {
            params,
            reply,
            session,
        } = self;
        tokio::spawn(async move {
            let turn = match disk.acquire(&session.outgoing).await {
                Ok(turn) => turn,
                Err(error) => return reply.error(error),
            };
            // Answered on that thread: to write a long answer takes its time too.
            let _ = turn.run(move || reply.finish(work(params))).await;
        });
    }
}

/// The answer a request is owed. It is consumed by answering; dropping it answers with an error, so
/// every request gets exactly one answer.
#[derive(Debug)]
pub(crate) struct Reply<R> {
    id: Id,
    method: &'static str,
    session: Arc<Session>,
    /// Lets the next request of the lane go when this one is answered.
    pass: Option<Pass>,
    /// What the request is known by, if it may come again.
    idempotency: Option<Box<RequestIdentity>>,
    answered: bool,
    result: PhantomData<fn(R)>,
}

impl<R: Serialize> Reply<R> {
    /// Answers with a result.
    pub(crate) fn ok(self, result: &R) {
        let frame = answer(&self.id, result);
        self.send(frame, RequestOutcome::Result);
    }

    /// Answers with a result that is written already.
    pub(crate) fn written(self, result: &RawValue) {
        let frame = answer(&self.id, &result);
        self.send(frame, RequestOutcome::Result);
    }

    /// Answers with what was answered before.
    pub(crate) fn send_stored(self, answer: String) {
        match RawValue::from_string(answer) {
            Ok(answer) => self.written(&answer),
            Err(_) => self.error(WireError::Dropped),
        }
    }

    /// What is owed for an order that the request means. Of one that may come again, what `show` makes of it is
    /// kept with what was done.
    pub(crate) fn into_reply_to<F>(mut self, show: F) -> ReplyTo
    where
        F: Fn(CommandResult<'_>) -> Result<R, WireError> + Send + Sync + 'static,
        R: 'static,
    {
        let Some(keyed) = self.take_idempotency() else {
            return ReplyTo::from(move |done: CommandResult<'_>| self.finish(show(done)));
        };
        let show = Arc::new(show);
        let shown = show.clone();
        let shows = RenderResponse::new(move |outcome, thread| {
            let outcome = outcome.clone();
            let result = shown(Ok(AppliedCommand { outcome, thread })).ok()?;
            serde_json::to_string(&result).ok()
        });
        let reply = move |done: CommandResult<'_>| match done {
            Ok(AppliedCommand {
                outcome: order::CommandOutcome::Kept { answer },
                ..
            }) => self.send_stored(answer),
            done => self.finish(show(done)),
        };
        let shows = Some(shows);
        ReplyTo::idempotent(
            reply,
            order::IdempotentRequest {
                render: shows,
                ..keyed
            },
        )
    }

    /// Answers with whichever it is.
    pub(crate) fn finish(self, outcome: Result<R, WireError>) {
        match outcome {
            Ok(result) => self.ok(&result),
            Err(error) => self.error(error),
        }
    }
}

impl<R> Reply<R> {
    pub(crate) fn new(id: Id, method: &'static str, session: Arc<Session>) -> Self {
        Self {
            id,
            method,
            session,
            pass: None,
            idempotency: None,
            answered: false,
            result: PhantomData,
        }
    }

    /// Who is owed the answer.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The request may come again.
    pub(crate) fn set_idempotency(&mut self, keyed: Option<Box<RequestIdentity>>) {
        self.idempotency = keyed;
    }

    /// What the request is known by, if it may come again.
    pub(crate) fn idempotency(&self) -> Option<&RequestIdentity> {
        self.idempotency.as_deref()
    }

    /// The thread that the request makes is there already.
    pub(crate) fn mark_thread_created(&mut self) {
        if let Some(keyed) = &mut self.idempotency {
            keyed.thread_exists = true;
        }
    }

    /// What the thread remembers the request by.
    pub(crate) fn take_idempotency(&mut self) -> Option<order::IdempotentRequest> {
        let keyed = self.idempotency.take()?;
        Some(order::IdempotentRequest {
            key: keyed.key,
            asked: keyed.request_hash,
            render: None,
        })
    }

    pub(crate) fn hold(&mut self, pass: Option<Pass>) {
        self.pass = pass;
    }

    /// Lets the next request of the lane go before this one is answered: when what this returns is
    /// dropped.
    pub(crate) fn take_pass(&mut self) -> Option<Pass> {
        self.pass.take()
    }

    /// Answers with an error.
    pub(crate) fn error(self, error: WireError) {
        self.refused(&ErrorObject::from(error));
    }

    /// Answers with an error as the wire says it.
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

impl<R> Drop for Reply<R> {
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
