//! The handle of a client: connects, makes calls, opens threads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use raddle_protocol::methods::{ThreadFork, ThreadResume, ThreadStart};
use raddle_protocol::{
    InitializeResponse, ItemId, Method, Notification, RequestId, ThreadForkParams, ThreadId,
    ThreadResumeParams, ThreadStartParams, extension,
};
use raddle_rpc::{ErrorObject, code};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::request_handler::handler_fn;
use crate::task::{
    CallRequest, CallResponse, ClientCommand, FollowStart, LaterAnswer, Task, greet,
};
use crate::{CallError, ConnectError, Options, RequestHandler, ServerAddress, ThreadFollower};

/// Maximum number of commands queued for the client's task.
const COMMANDS_MAX: usize = 64;

/// Maximum number of notices kept for a receiver of [`Client::notices`].
const NOTICES_MAX: usize = 64;

/// A connection to a server that reconnects by itself. Cheap to clone.
///
/// One task owns the connection. It ends when every clone and every [`ThreadFollower`] is dropped,
/// or with [`close`](Self::close).
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientInner>,
}

struct ClientInner {
    commands: mpsc::Sender<ClientCommand>,
    notices: broadcast::WeakSender<Notification>,
    closing: watch::Sender<bool>,
    /// The reason why the task ended. The channel closes when the task is done.
    ended: watch::Receiver<String>,
    server: InitializeResponse,
    has_idempotency: bool,
    message_bytes_max: usize,
}

impl Client {
    /// Starts the server or connects to it, and sends `initialize`.
    ///
    /// The handler answers the requests that the server sends, such as approvals.
    pub async fn connect(
        address: ServerAddress,
        options: Options,
        handler: impl RequestHandler,
    ) -> Result<Self, ConnectError> {
        let session = greet(&address, &options).await?;
        let server = session.server.clone();
        let (commands_tx, commands_rx) = mpsc::channel(COMMANDS_MAX);
        let (notices, _) = broadcast::channel(NOTICES_MAX);
        let (closing, is_closing) = watch::channel(false);
        let (end_reason, ended) = watch::channel(String::new());
        let inner = ClientInner {
            commands: commands_tx,
            notices: notices.downgrade(),
            closing,
            ended,
            has_idempotency: has(&server, extension::IDEMPOTENCY),
            message_bytes_max: options.message_bytes_max,
            server,
        };
        let task = Task::new(address, options, handler_fn(handler), session, notices);
        tokio::spawn(task.run(commands_rx, is_closing, end_reason));
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The server's response to the first `initialize`.
    pub fn server(&self) -> &InitializeResponse {
        &self.inner.server
    }

    /// Sends a request and waits for its result.
    ///
    /// If the connection is lost before the response, the client sends the request again in two
    /// cases: its method is [repeatable](Method::REPEATABLE), or it carries a `clientRequestId`, so
    /// that the server executes it once. The client adds that id to requests that change a thread,
    /// if the server supports it. Any other request fails with [`CallError::Lost`].
    pub async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result, CallError> {
        let response = self.ask::<M>(&params, None).await?;
        read(&response.result)
    }

    /// Starts a thread and follows it.
    pub async fn start(&self, params: ThreadStartParams) -> Result<ThreadFollower, CallError> {
        let start = FollowStart { cursor: Some(0) };
        self.follow::<ThreadStart>(&params, start).await
    }

    /// Opens an existing thread and follows it. With `afterSeq` the view holds only later events.
    pub async fn resume(&self, params: ThreadResumeParams) -> Result<ThreadFollower, CallError> {
        let start = FollowStart {
            cursor: params.after_seq,
        };
        self.follow::<ThreadResume>(&params, start).await
    }

    /// Opens the thread with this id and follows it.
    pub async fn open(&self, thread: ThreadId) -> Result<ThreadFollower, CallError> {
        self.resume(ThreadResumeParams::of(thread)).await
    }

    /// Forks a thread and follows the new one.
    pub async fn fork(&self, params: ThreadForkParams) -> Result<ThreadFollower, CallError> {
        let start = FollowStart { cursor: None };
        self.follow::<ThreadFork>(&params, start).await
    }

    /// Answers a question that the [`RequestHandler`] left open. Does nothing if it is resolved by
    /// now.
    pub async fn answer<T: Serialize>(&self, id: &RequestId, answer: &T) -> Result<(), CallError> {
        let answer =
            to_raw_value(answer).map_err(|error| CallError::Malformed(error.to_string()))?;
        self.settle(id, Ok(answer)).await
    }

    /// Reports that this client cannot answer a question that the [`RequestHandler`] left open. If
    /// no other client can, the server declines it for this reason. Does nothing if it is resolved
    /// by now.
    pub async fn cannot_answer(
        &self,
        id: &RequestId,
        why: impl Into<Cow<'static, str>>,
    ) -> Result<(), CallError> {
        let why = ErrorObject::new(code::METHOD_NOT_FOUND, why);
        self.settle(id, Err(why)).await
    }

    async fn settle(&self, id: &RequestId, outcome: LaterAnswer) -> Result<(), CallError> {
        let command = ClientCommand::Answer(id.clone(), outcome);
        let sent = self.inner.commands.send(command).await;
        sent.map_err(|_| self.closed())
    }

    /// Subscribes to the notifications that belong to no followed thread, starting now.
    pub fn notices(&self) -> Notices {
        let sender = self.inner.notices.upgrade();
        Notices(sender.map_or_else(|| broadcast::channel(1).1, |it| it.subscribe()))
    }

    /// Closes the connection and waits until it is closed. A child's stdin is closed, and the child
    /// has [`Options::exit_timeout`] to exit. Pending calls of other clones fail, and every
    /// [`ThreadFollower`] ends.
    pub async fn close(self) {
        // The task may have ended already.
        let _ = self.inner.closing.send(true);
        let mut ended = self.inner.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    async fn follow<M: Method>(
        &self,
        params: &M::Params,
        start: FollowStart,
    ) -> Result<ThreadFollower, CallError> {
        let response = self.ask::<M>(params, Some(start)).await?;
        let head = read(&response.result)?;
        // The task creates a queue for every response that starts a follower.
        let queue = response.queue.ok_or_else(|| self.closed())?;
        Ok(ThreadFollower::new(self.clone(), queue, head))
    }

    async fn ask<M: Method>(
        &self,
        params: &M::Params,
        start: Option<FollowStart>,
    ) -> Result<CallResponse, CallError> {
        let text = serialize_params::<M>(params)
            .map_err(|error| CallError::Malformed(error.to_string()))?;
        let (text, is_idempotent) = match M::client_request_id(params) {
            Some(_) => (text, self.inner.has_idempotency),
            None if M::HAS_IDEMPOTENCY_KEY && self.inner.has_idempotency => (with_id(&text), true),
            None => (text, false),
        };
        let bytes_max = self.inner.message_bytes_max;
        // 256 bytes are enough for the envelope.
        if text.len() + 256 > bytes_max {
            let bytes = text.len();
            return Err(CallError::TooLong { bytes, bytes_max });
        }
        let params =
            RawValue::from_string(text).map_err(|error| CallError::Malformed(error.to_string()))?;
        let (reply, answer) = oneshot::channel();
        let command = ClientCommand::Call(CallRequest {
            method: M::NAME,
            params,
            is_repeated: is_idempotent || M::REPEATABLE,
            start,
            reply,
        });
        let sent = self.inner.commands.send(command).await;
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

/// Whether the server offers an extension.
pub(crate) fn has(server: &InitializeResponse, extension: &str) -> bool {
    let raddle = server.raddle.as_ref();
    raddle.is_some_and(|it| it.extensions.iter().any(|name| name == extension))
}

fn read<T: serde::de::DeserializeOwned>(result: &RawValue) -> Result<T, CallError> {
    serde_json::from_str(result.get()).map_err(|error| CallError::Malformed(error.to_string()))
}

/// Serializes the params. Opt-in members are omitted if they are `null` or `false`: a server
/// rejects them from a client that did not opt in, whatever their value.
fn serialize_params<M: Method>(params: &M::Params) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(params)?;
    if M::GATED.is_empty() {
        return Ok(text);
    }
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(&text)?;
    let is_unset = |it: &RawValue| matches!(it.get(), "null" | "false");
    members.retain(|name, value| !(M::GATED.contains(name) && is_unset(value)));
    serde_json::to_string(&members)
}

/// Adds a fresh `clientRequestId` to the params.
fn with_id(params: &str) -> String {
    let id = ItemId::mint();
    match params.strip_prefix('{') {
        Some("}") => format!("{{\"clientRequestId\":\"{id}\"}}"),
        Some(rest) => format!("{{\"clientRequestId\":\"{id}\",{rest}"),
        None => params.to_owned(),
    }
}

/// Receiver of the notifications that belong to no followed thread.
#[derive(Debug)]
pub struct Notices(broadcast::Receiver<Notification>);

/// An entry of [`Notices`].
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "handed on at once, never kept in bulk"
)]
pub enum Notice {
    /// A notification of the server.
    Received(Notification),
    /// Number of notifications that were dropped because the receiver was too slow.
    Missed(u64),
}

impl Notices {
    /// Returns the next notice, or `None` when the client is closed.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.0.recv().await {
            Ok(notification) => Some(Notice::Received(notification)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Notice::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
