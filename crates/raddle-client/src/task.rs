//! The task that owns the connection to the server.

mod followed_threads;
mod questions;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use raddle_protocol::methods::{Initialize, ThreadResume, ThreadUnsubscribe};
use raddle_protocol::{InitializeResponse, Method, Notification, RequestId, ThreadId, extension};
use raddle_rpc::{Close, ErrorObject, Frame, Id, Inbound, InboundResponse, parse};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::followed_threads::FollowedThread;
pub(crate) use self::questions::LaterAnswer;
use self::questions::Questions;
use crate::client::has;
use crate::queue::EventQueue;
use crate::request_handler::HandlerFn;
use crate::server_address::ServerLink;
use crate::{CallError, ConnectError, Options, ServerAddress, ThreadEvent};

/// Maximum number of pending requests.
const CALLS_MAX: usize = 200;

/// Duration after which a connection counts as stable, and the attempts to reconnect are reset.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// Time for a child that closed its connection to exit. Then it is killed and another is started.
const CHILD_EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time for which the connection stays unread because a follower is slow. Then the client
/// discards that follower's events and reads them from the journal later.
const UNREAD_MAX: Duration = Duration::from_secs(2);

/// A command of a [`Client`](crate::Client) to its task.
pub(crate) enum ClientCommand {
    Call(CallRequest),
    Answer(RequestId, LaterAnswer),
}

/// A request, and the sender of its result.
pub(crate) struct CallRequest {
    pub(crate) method: &'static str,
    pub(crate) params: Box<RawValue>,
    /// Whether it is sent again after a reconnect, although it may have been executed.
    pub(crate) is_repeated: bool,
    /// Set if the response starts a follower.
    pub(crate) start: Option<FollowStart>,
    pub(crate) reply: oneshot::Sender<Result<CallResponse, CallError>>,
}

/// Starting point of a follower.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowStart {
    /// Sequence number after which the follower continues; `None` if the thread must be loaded
    /// again.
    pub(crate) cursor: Option<u64>,
}

/// The result of a request.
pub(crate) struct CallResponse {
    pub(crate) result: Box<RawValue>,
    /// Events of the thread, if the request started a follower.
    pub(crate) queue: Option<Arc<EventQueue>>,
}

/// A request without a response so far.
enum PendingCall {
    Sent(CallRequest, Bytes),
    /// Resumes a followed thread, after this sequence number or from a fresh snapshot.
    Rejoin(ThreadId, Option<u64>),
    /// The response is ignored.
    Ignored,
}

/// A server that has answered `initialize`.
pub(crate) struct GreetedServer {
    link: ServerLink,
    pub(crate) server: InitializeResponse,
}

/// Reason why [`Task::serve`] returned.
enum ConnectionEnd {
    Closed,
    Lost(String),
}

pub(crate) struct Task {
    address: ServerAddress,
    options: Options,
    notices: broadcast::Sender<Notification>,
    /// Notified when a follower is dropped, or its queue has drained.
    wake: Arc<Notify>,
    link: ServerLink,
    /// Whether the server sends sequence numbers.
    is_numbered: bool,
    next_id: i64,
    /// In the order of their ids.
    calls: BTreeMap<i64, PendingCall>,
    follows: HashMap<ThreadId, FollowedThread>,
    questions: Questions,
    /// Time until which the connection stays unread.
    paused_until: Option<Instant>,
}

impl Task {
    pub(crate) fn new(
        address: ServerAddress,
        options: Options,
        handler: HandlerFn,
        session: GreetedServer,
        notices: broadcast::Sender<Notification>,
    ) -> Self {
        Self {
            address,
            options,
            notices,
            wake: Arc::default(),
            is_numbered: has(&session.server, extension::SEQ),
            link: session.link,
            next_id: 1,
            calls: BTreeMap::new(),
            follows: HashMap::new(),
            questions: Questions::new(handler),
            paused_until: None,
        }
    }

    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<ClientCommand>,
        mut closing: watch::Receiver<bool>,
        ended: watch::Sender<String>,
    ) {
        let mut attempts = 0;
        let why = loop {
            let connected_at = Instant::now();
            let why = match self.serve(&mut commands, &mut closing).await {
                ConnectionEnd::Closed => break "it was closed".to_owned(),
                ConnectionEnd::Lost(why) => why,
            };
            if connected_at.elapsed() >= STABLE_AFTER {
                attempts = 0;
            }
            self.handle_disconnect(&why);
            let reconnected = tokio::select! {
                reconnected = self.reconnect(&mut attempts, why) => reconnected,
                () = is_closed(&mut closing) => break "it was closed".to_owned(),
            };
            match reconnected {
                Ok(session) => self.handle_reconnect(session),
                Err(why) => break why,
            }
        };
        ended.send_replace(why.clone());
        self.end(&why).await;
    }

    /// Serves the connection until it is closed or lost.
    async fn serve(
        &mut self,
        commands: &mut mpsc::Receiver<ClientCommand>,
        closing: &mut watch::Receiver<bool>,
    ) -> ConnectionEnd {
        loop {
            let outgoing = self.link.connection.outgoing.clone();
            let has_capacity = self.calls.len() < CALLS_MAX;
            let paused_until = self.paused_until;
            let wake = self.wake.clone();
            let next_retry = self.next_retry();
            let next_command = async {
                outgoing.wait_ready().await;
                commands.recv().await
            };
            tokio::select! {
                frame = self.link.connection.incoming.next(), if paused_until.is_none() => match frame {
                    Some(frame) => self.handle_frame(frame),
                    None => return ConnectionEnd::Lost(self.close_lost_link().await),
                },
                command = next_command, if has_capacity => match command {
                    Some(command) => self.handle_command(command),
                    None => return ConnectionEnd::Closed,
                },
                () = is_closed(closing) => return ConnectionEnd::Closed,
                answer = self.questions.next() => self.send(answer),
                () = wake.notified() => {}
                () = sleep_until(paused_until.unwrap_or_else(Instant::now)), if paused_until.is_some() => {}
                () = next_retry => {}
            }
            self.maintain_followers();
        }
    }

    fn handle_frame(&mut self, frame: Frame) {
        let Frame::Message(bytes) = frame else {
            return tracing::warn!(?frame, "a frame that is not a message was ignored");
        };
        match parse(&bytes) {
            Ok(Inbound::Response(response)) => self.handle_response(response),
            Ok(Inbound::Notification(notification)) => {
                self.handle_notification(&notification, bytes.len())
            }
            Ok(Inbound::Request(request)) => {
                if let Some(answer) = self.handle_request(&request, bytes.len()) {
                    self.send(answer);
                }
            }
            Err(fault) => tracing::warn!(?fault, "a malformed message was ignored"),
        }
    }

    fn send(&self, frame: Bytes) {
        self.link.connection.outgoing.send(frame);
    }

    fn handle_command(&mut self, command: ClientCommand) {
        // Forget dropped followers first: the command may open one of their threads again.
        self.maintain_followers();
        match command {
            ClientCommand::Call(call) => self.start_call(call),
            ClientCommand::Answer(id, outcome) => {
                let id = match id {
                    RequestId::String(text) => Id::String(text),
                    RequestId::Integer(number) => Id::Integer(number),
                };
                if let Some(frame) = self.questions.answer_later(&id, &outcome) {
                    self.send(frame);
                }
            }
        }
    }

    fn start_call(&mut self, call: CallRequest) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ThreadParams {
            thread_id: Option<ThreadId>,
        }
        if call.reply.is_closed() {
            return;
        }
        if call.method == ThreadResume::NAME && call.start.is_some() {
            let params: Option<ThreadParams> = serde_json::from_str(call.params.get()).ok();
            let thread = params.and_then(|params| params.thread_id);
            if thread.is_some_and(|id| self.follows.contains_key(&id)) {
                // The caller may have dropped the future.
                let _ = call.reply.send(Err(CallError::AlreadyFollowed));
                return;
            }
        }
        let id = self.mint();
        match raddle_rpc::request(&Id::Integer(id), call.method, &call.params) {
            Ok(frame) => {
                self.send(frame.clone());
                self.calls.insert(id, PendingCall::Sent(call, frame));
            }
            Err(error) => {
                let _ = call
                    .reply
                    .send(Err(CallError::Malformed(error.to_string())));
            }
        }
    }

    fn mint(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Sends `thread/resume` for a followed thread, after a sequence number or without one.
    fn rejoin(&mut self, thread: ThreadId, after: Option<u64>) {
        let params = match after {
            Some(after) => json!({"threadId": thread, "afterSeq": after}),
            None => json!({"threadId": thread}),
        };
        self.call(
            ThreadResume::NAME,
            &params,
            PendingCall::Rejoin(thread, after),
        );
    }

    fn unsubscribe(&mut self, thread: ThreadId) {
        let params = json!({"threadId": thread});
        self.call(ThreadUnsubscribe::NAME, &params, PendingCall::Ignored);
    }

    fn call(&mut self, method: &str, params: &serde_json::Value, call: PendingCall) {
        let id = self.mint();
        if let Ok(frame) = raddle_rpc::request(&Id::Integer(id), method, params) {
            self.send(frame);
            self.calls.insert(id, call);
        }
    }

    fn handle_response(&mut self, response: InboundResponse<'_>) {
        let Id::Integer(id) = response.id else {
            return;
        };
        match self.calls.remove(&id) {
            Some(PendingCall::Sent(call, _)) => match response.outcome {
                Ok(result) => self.finish_call(call, result),
                Err(error) => {
                    let _ = call.reply.send(Err(CallError::Refused(error)));
                }
            },
            Some(PendingCall::Rejoin(thread, after)) => {
                self.handle_resumed(thread, after, response.outcome)
            }
            Some(PendingCall::Ignored) | None => {}
        }
    }

    fn finish_call(&mut self, call: CallRequest, result: &RawValue) {
        #[derive(Deserialize)]
        struct StartedThread {
            thread: ThreadRef,
        }
        #[derive(Deserialize)]
        struct ThreadRef {
            id: ThreadId,
        }
        let started = call.start.and_then(|start| {
            let response: StartedThread = serde_json::from_str(result.get()).ok()?;
            Some((response.thread.id, start))
        });
        let mut queue = None;
        if let Some((thread, start)) = started {
            if self.follows.contains_key(&thread) {
                let _ = call.reply.send(Err(CallError::AlreadyFollowed));
                return;
            }
            let followed = FollowedThread::new(start.cursor, self.wake.clone());
            queue = Some(followed.queue.clone());
            self.follows.insert(thread, followed);
        }
        let result = result.to_owned();
        let response = CallResponse {
            result,
            queue: queue.clone(),
        };
        // If the caller dropped the future, close the queue.
        if call.reply.send(Ok(response)).is_err()
            && let Some(queue) = queue
        {
            queue.close();
        }
    }

    /// Closes the link, and returns the reason of the loss.
    async fn close_lost_link(&mut self) -> String {
        self.link.connection.outgoing.close(Close::NORMAL);
        match self.link.child.take() {
            Some(child) => match child.end(CHILD_EXIT_TIMEOUT).await {
                Some(status) => format!("the server ended: {status}"),
                None => "the server stopped responding and was killed".to_owned(),
            },
            None => "the connection was lost".to_owned(),
        }
    }

    /// Fails the pending calls that cannot be retried, and informs the followers.
    fn handle_disconnect(&mut self, why: &str) {
        self.paused_until = None;
        let calls = std::mem::take(&mut self.calls);
        for (id, call) in calls {
            match call {
                PendingCall::Sent(call, _) if call.reply.is_closed() => {}
                PendingCall::Sent(call, frame) if call.is_repeated => {
                    self.calls.insert(id, PendingCall::Sent(call, frame));
                }
                PendingCall::Sent(call, _) => {
                    let _ = call.reply.send(Err(CallError::Lost));
                }
                PendingCall::Rejoin(..) | PendingCall::Ignored => {}
            }
        }
        for followed in self.follows.values_mut() {
            followed.disconnect(why);
        }
    }

    /// Tries to reconnect. Returns the last error if it gives up.
    async fn reconnect(
        &self,
        attempts: &mut u32,
        mut why: String,
    ) -> Result<GreetedServer, String> {
        let reconnect = self.options.reconnect;
        while *attempts < reconnect.attempts_max {
            *attempts += 1;
            sleep(reconnect.wait(*attempts)).await;
            match greet(&self.address, &self.options).await {
                Ok(session) => return Ok(session),
                Err(error) => {
                    why = error.to_string();
                    tracing::info!(error = why, attempt = *attempts, "reconnect attempt failed");
                }
            }
        }
        Err(why)
    }

    /// Resumes the followed threads and sends the pending calls again.
    fn handle_reconnect(&mut self, session: GreetedServer) {
        self.link = session.link;
        self.is_numbered = has(&session.server, extension::SEQ);
        if !self.is_numbered {
            // Without sequence numbers the server repeats its questions under new ids.
            self.questions.forget();
        }
        // The next round of `serve` removes the followers that have been dropped.
        for thread in self.matching(|it| !it.queue.is_closed()) {
            self.resume(thread);
        }
        for call in self.calls.values() {
            if let PendingCall::Sent(_, frame) = call {
                self.send(frame.clone());
            }
        }
    }

    /// Fails the pending calls, ends the followers, and closes the connection.
    async fn end(mut self, why: &str) {
        self.questions.forget();
        for call in std::mem::take(&mut self.calls).into_values() {
            if let PendingCall::Sent(pending, _) = call {
                let _ = pending.reply.send(Err(CallError::Closed(why.to_owned())));
            }
        }
        for followed in self.follows.values() {
            let why = why.to_owned();
            followed.queue.push(ThreadEvent::Lost { why }, 0);
            followed.queue.end();
        }
        self.link.connection.outgoing.close(Close::NORMAL);
        let drain = async {
            // Drain the connection, so that the server can finish writing.
            while self.link.connection.incoming.next().await.is_some() {}
        };
        let _ = timeout(self.options.exit_timeout, drain).await;
        if let Some(child) = self.link.child.take() {
            child.end(self.options.exit_timeout).await;
        }
    }
}

/// Resolves when the client is closed or its last handle is dropped.
async fn is_closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|it| *it).await;
}

/// Opens the connection and sends `initialize`.
pub(crate) async fn greet(
    address: &ServerAddress,
    options: &Options,
) -> Result<GreetedServer, ConnectError> {
    let greeting = async {
        let mut link = address.open().await?;
        let id = Id::Integer(1);
        let hello = to_raw_value(&options.initialize_params())
            .and_then(|params| raddle_rpc::request(&id, Initialize::NAME, &params))
            .map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        link.connection.outgoing.send(hello);
        let answer = loop {
            match link.connection.incoming.next().await {
                Some(Frame::Message(bytes)) => {
                    if let Ok(Inbound::Response(response)) = parse(&bytes)
                        && response.id == id
                    {
                        break parse_initialize_response(response.outcome)?;
                    }
                }
                Some(_) => {}
                None => {
                    let exit_status = match link.child.take() {
                        Some(child) => child.end(CHILD_EXIT_TIMEOUT).await,
                        None => None,
                    };
                    return Err(ConnectError::Ended(exit_status));
                }
            }
        };
        let initialized = raddle_rpc::notification("initialized", &json!({}), None, None);
        link.connection.outgoing.send(initialized);
        Ok(GreetedServer {
            link,
            server: answer,
        })
    };
    timeout(options.connect_timeout, greeting)
        .await
        .unwrap_or(Err(ConnectError::TimedOut))
}

fn parse_initialize_response(
    outcome: Result<&RawValue, ErrorObject>,
) -> Result<InitializeResponse, ConnectError> {
    let answer = outcome.map_err(ConnectError::Refused)?;
    serde_json::from_str(answer.get()).map_err(|error| {
        ConnectError::Unreachable(format!("unexpected response to initialize: {error}"))
    })
}
