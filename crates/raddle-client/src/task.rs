//! The task that owns the connection.

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
use self::questions::Questions;
use crate::client::has;
use crate::queue::EventQueue;
use crate::request_handler::HandlerFn;
use crate::server_address::ServerLink;
use crate::{CallError, ConnectError, Options, ServerAddress, ThreadEvent};

/// How many requests may be under way at once.
const CALLS_MAX: usize = 200;

/// A connection that lasted this long is a good one: attempts to come back are counted anew.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// How long a child that no longer speaks may take to end before it is killed and another is started.
const CHILD_EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the connection is left unread for a follower that does not take what there is. Then what comes for it
/// is passed over, and read from the journal later.
const UNREAD_MAX: Duration = Duration::from_secs(2);

/// What a handle wants.
pub(crate) enum ClientCommand {
    Call(CallRequest),
    Answer(RequestId, Box<RawValue>),
}

/// A request.
pub(crate) struct CallRequest {
    pub(crate) method: &'static str,
    pub(crate) params: Box<RawValue>,
    /// Whether it is sent again when nobody knows whether it was done.
    pub(crate) is_repeated: bool,
    /// Whether its answer begins a thread that is followed.
    pub(crate) start: Option<FollowStart>,
    pub(crate) reply: oneshot::Sender<Result<CallResponse, CallError>>,
}

/// Where a thread that is followed begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowStart {
    /// The number after which it goes on; none if it must be shown anew.
    pub(crate) cursor: Option<u64>,
}

/// The answer to a request.
pub(crate) struct CallResponse {
    pub(crate) result: Box<RawValue>,
    /// What happens in the thread that it begins.
    pub(crate) queue: Option<Arc<EventQueue>>,
}

/// A request that was sent and not answered.
enum PendingCall {
    Sent(CallRequest, Bytes),
    /// A thread that is followed goes on, after this number or from how it is.
    Rejoin(ThreadId, Option<u64>),
    /// Whatever the answer is.
    Ignored,
}

/// A server that was greeted.
pub(crate) struct GreetedServer {
    link: ServerLink,
    pub(crate) server: InitializeResponse,
}

/// Why the connection is served no more.
enum ConnectionEnd {
    Closed,
    Lost(String),
}

pub(crate) struct Task {
    address: ServerAddress,
    options: Options,
    notices: broadcast::Sender<Notification>,
    /// Woken when a follower leaves, or has room again.
    wake: Arc<Notify>,
    link: ServerLink,
    /// Whether the server numbers its records.
    is_numbered: bool,
    next_id: i64,
    /// In the order in which they were made.
    calls: BTreeMap<i64, PendingCall>,
    follows: HashMap<ThreadId, FollowedThread>,
    questions: Questions,
    /// Until when the connection is left unread.
    paused_until: Option<Instant>,
}

impl Task {
    pub(crate) fn new(
        address: ServerAddress,
        options: Options,
        asker: HandlerFn,
        greeted: GreetedServer,
        notices: broadcast::Sender<Notification>,
    ) -> Self {
        Self {
            address,
            options,
            notices,
            wake: Arc::default(),
            is_numbered: has(&greeted.server, extension::SEQ),
            link: greeted.link,
            next_id: 1,
            calls: BTreeMap::new(),
            follows: HashMap::new(),
            questions: Questions::new(asker),
            paused_until: None,
        }
    }

    pub(crate) async fn run(
        mut self,
        mut orders: mpsc::Receiver<ClientCommand>,
        mut closing: watch::Receiver<bool>,
        ended: watch::Sender<String>,
    ) {
        let mut attempts = 0;
        let why = loop {
            let begun = Instant::now();
            let why = match self.serve(&mut orders, &mut closing).await {
                ConnectionEnd::Closed => break "it was closed".to_owned(),
                ConnectionEnd::Lost(why) => why,
            };
            if begun.elapsed() >= STABLE_AFTER {
                attempts = 0;
            }
            self.disconnected(&why);
            let back = tokio::select! {
                back = self.reconnect(&mut attempts, why) => back,
                () = is_closed(&mut closing) => break "it was closed".to_owned(),
            };
            match back {
                Ok(greeted) => self.reconnected(greeted),
                Err(why) => break why,
            }
        };
        ended.send_replace(why.clone());
        self.end(&why).await;
    }

    /// Serves the connection until it ends.
    async fn serve(
        &mut self,
        orders: &mut mpsc::Receiver<ClientCommand>,
        closing: &mut watch::Receiver<bool>,
    ) -> ConnectionEnd {
        loop {
            let outgoing = self.link.connection.outgoing.clone();
            let has_room = self.calls.len() < CALLS_MAX;
            let held = self.paused_until;
            let stirred = self.wake.clone();
            let next_retry = self.next_retry();
            let next_order = async {
                outgoing.wait_ready().await;
                orders.recv().await
            };
            tokio::select! {
                frame = self.link.connection.incoming.next(), if held.is_none() => match frame {
                    Some(frame) => self.take(frame),
                    None => return ConnectionEnd::Lost(self.lost().await),
                },
                order = next_order, if has_room => match order {
                    Some(order) => self.handle_command(order),
                    None => return ConnectionEnd::Closed,
                },
                () = is_closed(closing) => return ConnectionEnd::Closed,
                answer = self.questions.next() => self.send(answer),
                () = stirred.notified() => {}
                () = sleep_until(held.unwrap_or_else(Instant::now)), if held.is_some() => {}
                () = next_retry => {}
            }
            self.look_after_follows();
        }
    }

    fn take(&mut self, frame: Frame) {
        let Frame::Message(bytes) = frame else {
            return tracing::warn!(?frame, "a frame that is no message was passed over");
        };
        match parse(&bytes) {
            Ok(Inbound::Response(response)) => self.answered(response),
            Ok(Inbound::Notification(told)) => self.told(&told, bytes.len()),
            Ok(Inbound::Request(request)) => {
                if let Some(answer) = self.asked(&request, bytes.len()) {
                    self.send(answer);
                }
            }
            Err(fault) => tracing::warn!(?fault, "a message that cannot be read was passed over"),
        }
    }

    fn send(&self, frame: Bytes) {
        self.link.connection.outgoing.send(frame);
    }

    fn handle_command(&mut self, order: ClientCommand) {
        // A thread that was let go of may be the one that is asked for.
        self.look_after_follows();
        match order {
            ClientCommand::Call(ask) => self.ask(ask),
            ClientCommand::Answer(id, answer) => {
                let id = match id {
                    RequestId::String(text) => Id::String(text),
                    RequestId::Integer(number) => Id::Integer(number),
                };
                if let Some(frame) = self.questions.answered_later(&id, &answer) {
                    self.send(frame);
                }
            }
        }
    }

    fn ask(&mut self, ask: CallRequest) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ThreadParams {
            thread_id: Option<ThreadId>,
        }
        if ask.reply.is_closed() {
            return;
        }
        if ask.method == ThreadResume::NAME && ask.start.is_some() {
            let of: Option<ThreadParams> = serde_json::from_str(ask.params.get()).ok();
            let thread = of.and_then(|of| of.thread_id);
            if thread.is_some_and(|id| self.follows.contains_key(&id)) {
                // Nobody who waits is no trouble.
                let _ = ask.reply.send(Err(CallError::AlreadyFollowed));
                return;
            }
        }
        let id = self.mint();
        match raddle_rpc::request(&Id::Integer(id), ask.method, &ask.params) {
            Ok(frame) => {
                self.send(frame.clone());
                self.calls.insert(id, PendingCall::Sent(ask, frame));
            }
            Err(error) => {
                let _ = ask.reply.send(Err(CallError::Malformed(error.to_string())));
            }
        }
    }

    fn mint(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Asks for a thread that is followed, after a number or as it is.
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

    fn answered(&mut self, response: InboundResponse<'_>) {
        let Id::Integer(id) = response.id else {
            return;
        };
        match self.calls.remove(&id) {
            Some(PendingCall::Sent(ask, _)) => match response.outcome {
                Ok(result) => self.has_result(ask, result),
                Err(error) => {
                    let _ = ask.reply.send(Err(CallError::Refused(error)));
                }
            },
            Some(PendingCall::Rejoin(thread, after)) => {
                self.rejoined(thread, after, response.outcome)
            }
            Some(PendingCall::Ignored) | None => {}
        }
    }

    fn has_result(&mut self, ask: CallRequest, result: &RawValue) {
        #[derive(Deserialize)]
        struct StartedThread {
            thread: ThreadRef,
        }
        #[derive(Deserialize)]
        struct ThreadRef {
            id: ThreadId,
        }
        let begun = ask.start.and_then(|begins| {
            let begun: StartedThread = serde_json::from_str(result.get()).ok()?;
            Some((begun.thread.id, begins))
        });
        let mut queue = None;
        if let Some((thread, begins)) = begun {
            if self.follows.contains_key(&thread) {
                let _ = ask.reply.send(Err(CallError::AlreadyFollowed));
                return;
            }
            let followed = FollowedThread::new(begins.cursor, self.wake.clone());
            queue = Some(followed.queue.clone());
            self.follows.insert(thread, followed);
        }
        let result = result.to_owned();
        let answered = CallResponse {
            result,
            queue: queue.clone(),
        };
        // Who asked may be gone; then nobody follows.
        if ask.reply.send(Ok(answered)).is_err()
            && let Some(queue) = queue
        {
            queue.close();
        }
    }

    /// How the connection was lost.
    async fn lost(&mut self) -> String {
        self.link.connection.outgoing.close(Close::NORMAL);
        match self.link.child.take() {
            Some(child) => match child.end(CHILD_EXIT_TIMEOUT).await {
                Some(status) => format!("the server ended: {status}"),
                None => "the server stopped speaking and was killed".to_owned(),
            },
            None => "the connection was lost".to_owned(),
        }
    }

    /// Nobody knows what became of what was under way.
    fn disconnected(&mut self, why: &str) {
        self.paused_until = None;
        let calls = std::mem::take(&mut self.calls);
        for (id, call) in calls {
            match call {
                PendingCall::Sent(ask, _) if ask.reply.is_closed() => {}
                PendingCall::Sent(ask, frame) if ask.is_repeated => {
                    self.calls.insert(id, PendingCall::Sent(ask, frame));
                }
                PendingCall::Sent(ask, _) => {
                    let _ = ask.reply.send(Err(CallError::Lost));
                }
                PendingCall::Rejoin(..) | PendingCall::Ignored => {}
            }
        }
        for followed in self.follows.values_mut() {
            followed.cut(why);
        }
    }

    /// Tries to come back; the reason if it cannot.
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
                Ok(greeted) => return Ok(greeted),
                Err(error) => {
                    tracing::info!(%error, attempt = *attempts, "not back yet");
                    why = error.to_string();
                }
            }
        }
        Err(why)
    }

    /// Threads go on where they were, and what may be asked again is.
    fn reconnected(&mut self, greeted: GreetedServer) {
        self.link = greeted.link;
        self.is_numbered = has(&greeted.server, extension::SEQ);
        if !self.is_numbered {
            // Its questions have other ids now.
            self.questions.forget();
        }
        // Those that were left meanwhile are let go of with the next look.
        for thread in self.matching(|it| !it.queue.is_closed()) {
            self.go_on(thread);
        }
        for call in self.calls.values() {
            if let PendingCall::Sent(_, frame) = call {
                self.send(frame.clone());
            }
        }
    }

    /// Lets go of everything, in good order.
    async fn end(mut self, why: &str) {
        self.questions.forget();
        for call in std::mem::take(&mut self.calls).into_values() {
            if let PendingCall::Sent(ask, _) = call {
                let _ = ask.reply.send(Err(CallError::Closed(why.to_owned())));
            }
        }
        for followed in self.follows.values() {
            let why = why.to_owned();
            followed.queue.push(ThreadEvent::Lost { why }, 0);
            followed.queue.end();
        }
        self.link.connection.outgoing.close(Close::NORMAL);
        let farewell = async {
            // What is still said is heard, so that whoever says it can end.
            while self.link.connection.incoming.next().await.is_some() {}
        };
        let _ = timeout(self.options.exit_timeout, farewell).await;
        if let Some(child) = self.link.child.take() {
            child.end(self.options.exit_timeout).await;
        }
    }
}

/// Resolves when someone closes the client, or nobody has it any more.
async fn is_closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|it| *it).await;
}

/// Opens the way and says who we are.
pub(crate) async fn greet(
    place: &ServerAddress,
    options: &Options,
) -> Result<GreetedServer, ConnectError> {
    let greeted = async {
        let mut opened = place.open().await?;
        let id = Id::Integer(1);
        let hello = to_raw_value(&options.initialize_params())
            .and_then(|params| raddle_rpc::request(&id, Initialize::NAME, &params))
            .map_err(|error| ConnectError::NotThere(error.to_string()))?;
        opened.connection.outgoing.send(hello);
        let answer = loop {
            match opened.connection.incoming.next().await {
                Some(Frame::Message(bytes)) => {
                    if let Ok(Inbound::Response(response)) = parse(&bytes)
                        && response.id == id
                    {
                        break read_greeting(response.outcome)?;
                    }
                }
                Some(_) => {}
                None => {
                    let how = match opened.child.take() {
                        Some(child) => child
                            .end(CHILD_EXIT_TIMEOUT)
                            .await
                            .map(|status| status.to_string()),
                        None => None,
                    };
                    return Err(ConnectError::Ended(how));
                }
            }
        };
        let thanks = raddle_rpc::notification("initialized", &json!({}), None, None);
        opened.connection.outgoing.send(thanks);
        Ok(GreetedServer {
            link: opened,
            server: answer,
        })
    };
    timeout(options.connect_timeout, greeted)
        .await
        .unwrap_or(Err(ConnectError::Silent))
}

fn read_greeting(
    outcome: Result<&RawValue, ErrorObject>,
) -> Result<InitializeResponse, ConnectError> {
    let answer = outcome.map_err(ConnectError::Refused)?;
    serde_json::from_str(answer.get())
        .map_err(|error| ConnectError::NotThere(format!("it greets in other words: {error}")))
}
