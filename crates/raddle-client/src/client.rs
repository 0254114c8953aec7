//! The handle of a client.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use raddle_protocol::methods::{ThreadFork, ThreadResume, ThreadStart};
use raddle_protocol::{
    InitializeResponse, ItemId, Method, Notification, RequestId, ThreadForkParams, ThreadId,
    ThreadResumeParams, ThreadStartParams, extension,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::request_handler::handler_fn;
use crate::retry::is_read_only;
use crate::task::{CallRequest, CallResponse, ClientCommand, FollowStart, Task, greet};
use crate::{CallError, ConnectError, Options, RequestHandler, ServerAddress, ThreadFollower};

/// How many requests may wait for the client's task.
const COMMANDS_MAX: usize = 64;

/// How many notices are kept for whoever listens.
const NOTICES_MAX: usize = 64;

/// A connection to a server, which comes back by itself. Cheap to clone.
///
/// One task owns the connection; it ends when every clone and every [`Follow`] is dropped, or with
/// [`close`](Self::close).
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientInner>,
}

struct ClientInner {
    commands: mpsc::Sender<ClientCommand>,
    notices: broadcast::WeakSender<Notification>,
    closing: watch::Sender<bool>,
    /// Why the task ended; closed when it has.
    ended: watch::Receiver<String>,
    server: InitializeResponse,
    is_keyed: bool,
    message_bytes_max: usize,
}

impl Client {
    /// Starts the server or goes to it, and greets it.
    pub async fn connect(
        place: ServerAddress,
        options: Options,
        answers: impl RequestHandler,
    ) -> Result<Self, ConnectError> {
        let greeted = greet(&place, &options).await?;
        let server = greeted.server.clone();
        let (orders, taken) = mpsc::channel(COMMANDS_MAX);
        let (notices, _) = broadcast::channel(NOTICES_MAX);
        let (closing, is_closing) = watch::channel(false);
        let (why, ended) = watch::channel(String::new());
        let inner = ClientInner {
            commands: orders,
            notices: notices.downgrade(),
            closing,
            ended,
            is_keyed: has(&server, extension::IDEMPOTENCY),
            message_bytes_max: options.message_bytes_max,
            server,
        };
        let task = Task::new(place, options, handler_fn(answers), greeted, notices);
        tokio::spawn(task.run(taken, is_closing, why));
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the server said of itself when it was first greeted.
    pub fn server(&self) -> &InitializeResponse {
        &self.inner.server
    }

    /// Makes a request, and waits for its result.
    ///
    /// If the connection is lost meanwhile, a request that only looks is made again, and so is one that changes a
    /// thread, under the same `clientRequestId`, so that it is done once; one is given to it if it has none. Any other
    /// fails with [`CallError::Lost`].
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result, CallError> {
        let answered = self.ask::<M>(&params, None).await?;
        read(&answered.result)
    }

    /// Starts a thread and follows it.
    pub async fn start(&self, params: ThreadStartParams) -> Result<ThreadFollower, CallError> {
        let begins = FollowStart { cursor: Some(0) };
        self.follow::<ThreadStart>(&params, begins).await
    }

    /// Opens a thread that is there and follows it. With `afterSeq` its view holds only what comes after that.
    pub async fn resume(&self, params: ThreadResumeParams) -> Result<ThreadFollower, CallError> {
        let begins = FollowStart {
            cursor: params.after_seq,
        };
        self.follow::<ThreadResume>(&params, begins).await
    }

    /// Opens the thread of this id and follows it.
    pub async fn open(&self, thread: ThreadId) -> Result<ThreadFollower, CallError> {
        self.resume(ThreadResumeParams::of(thread)).await
    }

    /// Makes a thread that goes on from another, and follows it.
    pub async fn fork(&self, params: ThreadForkParams) -> Result<ThreadFollower, CallError> {
        let begins = FollowStart { cursor: None };
        self.follow::<ThreadFork>(&params, begins).await
    }

    /// Answers a question that [`Answers`] left open. If it is settled by now, nothing happens.
    pub async fn answer<T: Serialize>(&self, id: &RequestId, answer: &T) -> Result<(), CallError> {
        let answer =
            to_raw_value(answer).map_err(|error| CallError::Malformed(error.to_string()))?;
        let order = ClientCommand::Answer(id.clone(), answer);
        let sent = self.inner.commands.send(order).await;
        sent.map_err(|_| self.closed())
    }

    /// What the server tells that is about no thread that is followed. Begins with what comes from now on.
    pub fn notices(&self) -> Notices {
        let open = self.inner.notices.upgrade();
        Notices(open.map_or_else(|| broadcast::channel(1).1, |it| it.subscribe()))
    }

    /// Ends the connection, and waits for it: a child's stdin ends, and it is waited for. What is still asked by other
    /// clones fails, and threads that are followed come to their end.
    pub async fn close(self) {
        // The task may be gone already.
        let _ = self.inner.closing.send(true);
        let mut ended = self.inner.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    async fn follow<M: Method>(
        &self,
        params: &M::Params,
        begins: FollowStart,
    ) -> Result<ThreadFollower, CallError> {
        let answered = self.ask::<M>(params, Some(begins)).await?;
        let head = read(&answered.result)?;
        // The task makes one for every answer that begins something.
        let queue = answered.queue.ok_or_else(|| self.closed())?;
        Ok(ThreadFollower::new(self.clone(), queue, head))
    }

    async fn ask<M: Method>(
        &self,
        params: &M::Params,
        begins: Option<FollowStart>,
    ) -> Result<CallResponse, CallError> {
        let text = written::<M>(params).map_err(|error| CallError::Malformed(error.to_string()))?;
        let (text, is_keyed) = match M::client_request_id(params) {
            Some(_) => (text, self.inner.is_keyed),
            None if M::KEYED && self.inner.is_keyed => (with_id(&text), true),
            None => (text, false),
        };
        let bytes_max = self.inner.message_bytes_max;
        // The envelope around it is short.
        if text.len() + 256 > bytes_max {
            let bytes = text.len();
            return Err(CallError::TooLong { bytes, bytes_max });
        }
        let params =
            RawValue::from_string(text).map_err(|error| CallError::Malformed(error.to_string()))?;
        let (reply, answer) = oneshot::channel();
        let order = ClientCommand::Call(CallRequest {
            method: M::NAME,
            params,
            is_repeated: is_keyed || is_read_only(M::NAME),
            start: begins,
            reply,
        });
        let sent = self.inner.commands.send(order).await;
        sent.map_err(|_| self.closed())?;
        answer.await.unwrap_or_else(|_| Err(self.closed()))
    }

    fn closed(&self) -> CallError {
        CallError::Closed(self.inner.ended.borrow().clone())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.inner.server.user_agent)
            .finish_non_exhaustive()
    }
}

/// Whether a server has an extension.
pub(crate) fn has(server: &InitializeResponse, extension: &str) -> bool {
    let raddle = server.raddle.as_ref();
    raddle.is_some_and(|it| it.extensions.iter().any(|name| name == extension))
}

fn read<T: serde::de::DeserializeOwned>(result: &RawValue) -> Result<T, CallError> {
    serde_json::from_str(result.get()).map_err(|error| CallError::Malformed(error.to_string()))
}

/// The params as text. Members for which a client must opt in are left out where they say nothing: a server refuses
/// them from whoever did not, even so.
fn written<M: Method>(params: &M::Params) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(params)?;
    if M::GATED.is_empty() {
        return Ok(text);
    }
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(&text)?;
    let says_nothing = |it: &RawValue| matches!(it.get(), "null" | "false");
    members.retain(|name, value| !(M::GATED.contains(name) && says_nothing(value)));
    serde_json::to_string(&members)
}

/// The same params with an id of their own.
fn with_id(params: &str) -> String {
    let id = ItemId::mint();
    match params.strip_prefix('{') {
        Some("}") => format!("{{\"clientRequestId\":\"{id}\"}}"),
        Some(rest) => format!("{{\"clientRequestId\":\"{id}\",{rest}"),
        None => params.to_owned(),
    }
}

/// What the server tells that is about no thread that is followed.
#[derive(Debug)]
pub struct Notices(broadcast::Receiver<Notification>);

/// One of them.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "handed on at once, never kept in bulk"
)]
pub enum Notice {
    /// What was told.
    Received(Notification),
    /// So many were not taken in time, and are forgotten.
    Missed(u64),
}

impl Notices {
    /// The next one; nothing when the client is closed.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.0.recv().await {
            Ok(told) => Some(Notice::Received(told)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Notice::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
