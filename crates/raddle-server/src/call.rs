//! A request on its way through the rooms, and the one answer it is owed.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use raddle_protocol::table::Method;
use raddle_rpc::{ErrorObject, Id, answer, refusal};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::disk::Disk;
use crate::lanes::Pass;
use crate::metrics::Outcome;
use crate::rooms::Rooms;
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
    pub(crate) fn at_home<F>(self, rooms: &Rooms, work: F)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
    {
        self.on(rooms.home.clone(), work);
    }

    fn on<F>(self, disk: Disk, work: F)
    where
        F: FnOnce(M::Params) -> Result<M::Result, WireError> + Send + 'static,
    {
        let Self {
            params,
            reply,
            session,
        } = self;
        tokio::spawn(async move {
            let turn = match disk.turn(&session.outgoing).await {
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
    answered: bool,
    result: PhantomData<fn(R)>,
}

impl<R: Serialize> Reply<R> {
    /// Answers with a result.
    pub(crate) fn ok(self, result: &R) {
        let frame = answer(&self.id, result);
        self.send(frame, Outcome::Result);
    }

    /// Answers with a result that is written already.
    pub(crate) fn written(self, result: &RawValue) {
        let frame = answer(&self.id, &result);
        self.send(frame, Outcome::Result);
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
            answered: false,
            result: PhantomData,
        }
    }

    /// Who is owed the answer.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
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
        let error = ErrorObject::from(error);
        let frame = refusal(Some(&self.id), &error);
        self.send(frame, Outcome::Error(error.code));
    }

    fn send(mut self, frame: Bytes, outcome: Outcome) {
        self.answered = true;
        self.session.metrics.answered(self.method, outcome);
        self.session.answer(&self.id, frame);
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        if !self.answered {
            let error = ErrorObject::from(WireError::Dropped);
            let outcome = Outcome::Error(error.code);
            self.session.metrics.answered(self.method, outcome);
            self.session
                .answer(&self.id, refusal(Some(&self.id), &error));
        }
    }
}
