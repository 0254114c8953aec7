//! The state of one connection.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use raddle_agent::Subscriber;
use raddle_config::ConfigWriter;
use raddle_config::clock::now;
use raddle_protocol::{InitializeParams, Notification, RequestId, ThreadId, extension};
use raddle_rpc::{Id, Outgoing, Peer, Transport, notification, request};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tracing::Span;

use crate::disk::DiskExecutor;
use crate::metrics::{Metrics, transport_name};
use crate::relay::Relay;
use crate::request_ids::RequestIds;
use crate::services::ServerState;
use crate::services::processes::Processes;
use crate::services::search_sessions::SearchSessions;
use crate::services::watches::Watch;
use crate::spans;

/// Limit: answers of one client to server requests that wait for threads; beyond it, the answer is
/// dropped and logged.
const ANSWERS_KIB_MAX: usize = 64 << 10;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Limit: disk jobs of one connection that run at a time; beyond it, further jobs wait in order,
/// and are dropped when the client disconnects.
///
/// A connection whose disk hangs occupies this many threads and no more.
const DISK_JOBS_MAX: usize = 16;

/// How long a request waits for capacity for its bytes.
const CAPACITY_TIMEOUT: Duration = Duration::from_secs(30);

/// One connection: its client, its role, its running requests.
pub(crate) struct Session {
    /// Number of the connection, for the log.
    pub(crate) number: u64,
    /// Span of the connection, for the log.
    pub(crate) span: Span,
    pub(crate) peer: Peer,
    pub(crate) outgoing: Outgoing,
    /// The connection's share of the threads that block on disks.
    pub(crate) disk: DiskExecutor,
    pub(crate) counts: FrameCounts,
    /// The metrics of the server.
    pub(crate) metrics: Arc<Metrics>,
    request_ids: RequestIds,
    client: OnceLock<ClientProfile>,
    running: Mutex<RunningRequests>,
    running_max: usize,
    running_bytes_max: usize,
    /// Notified when no request runs any more, and when there may be capacity for a waiting
    /// request.
    finished: Notify,
    /// The client's file watches by its names for them.
    pub(crate) watches: Mutex<HashMap<String, Watch>>,
    pub(crate) processes: Processes,
    pub(crate) searches: SearchSessions,
    /// The connection's subscriber of threads.
    pub(crate) subscriber: OnceLock<Arc<dyn Subscriber>>,
    /// The threads that it subscribed to.
    threads: Mutex<HashSet<ThreadId>>,
    /// Capacity for answers that wait for their threads.
    pub(crate) answers: Arc<Semaphore>,
    /// Links and subscriptions of the client in other processes.
    pub(crate) relay: Relay,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("number", &self.number)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// The client as described in its `initialize` params.
#[derive(Debug)]
pub(crate) struct ClientProfile {
    pub(crate) name: String,
    pub(crate) experimental: bool,
    /// Whether it receives the sequence numbers of records.
    pub(crate) wants_seq: bool,
    /// Whether it may give ids to its requests.
    pub(crate) has_idempotency: bool,
    /// Whether it receives `turn/progress`.
    pub(crate) wants_progress: bool,
    /// Whether it may call methods of plugins, and receives `plugin/event`.
    pub(crate) has_plugins: bool,
    /// Whether it receives the hunks of a proposed change, and may choose among them.
    pub(crate) has_hunks: bool,
    pub(crate) role: Role,
    opted_out: HashSet<String>,
}

/// Role of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// May do whatever its connection may.
    Driver,
    /// May only read.
    Observer,
}

#[derive(Debug, Default)]
struct RunningRequests {
    /// Frame size in bytes of each request.
    requests: HashMap<Id, usize>,
    /// Sum of these bytes.
    bytes: usize,
    /// Whether a request waits for capacity.
    is_waited_for: bool,
}

impl RunningRequests {
    /// Whether a request of this many bytes may join the others. A single one always may.
    fn has_capacity(&self, bytes: usize, bytes_max: usize) -> bool {
        self.bytes == 0 || self.bytes.saturating_add(bytes) <= bytes_max
    }
}

/// Reason why a request may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusyReason {
    /// A request with this id is still running.
    SameId,
    /// Too many requests are running, or too large ones.
    TooMany,
}

impl Session {
    pub(crate) fn new(peer: Peer, outgoing: Outgoing, state: &ServerState) -> Self {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self {
            number,
            span: spans::connection(number, transport_name(peer.transport)),
            peer,
            disk: DiskExecutor::of_client(&state.disks, DISK_JOBS_MAX),
            outgoing,
            counts: FrameCounts::default(),
            metrics: state.metrics.clone(),
            request_ids: RequestIds::default(),
            client: OnceLock::new(),
            running: Mutex::default(),
            running_max: state.options.requests_max,
            running_bytes_max: state.options.requests_bytes_max,
            finished: Notify::new(),
            watches: Mutex::default(),
            processes: Processes::default(),
            searches: SearchSessions::default(),
            subscriber: OnceLock::new(),
            threads: Mutex::default(),
            answers: Arc::new(Semaphore::new(ANSWERS_KIB_MAX)),
            relay: Relay::default(),
        }
    }

    /// Returns the client, once it has sent `initialize`.
    pub(crate) fn client(&self) -> Option<&ClientProfile> {
        self.client.get()
    }

    /// Stores the `initialize` params; returns false if there were some already.
    pub(crate) fn introduce(&self, params: &InitializeParams, role: Role) -> bool {
        let capabilities = params.capabilities.as_ref();
        let extensions = capabilities.and_then(|it| it.extensions.as_ref());
        let has_extension = |name: &str| extensions.is_some_and(|it| it.contains_key(name));
        let client = ClientProfile {
            name: params.client_info.name.clone(),
            experimental: capabilities.is_some_and(|it| it.experimental_api),
            wants_seq: has_extension(extension::SEQ),
            has_idempotency: has_extension(extension::IDEMPOTENCY),
            wants_progress: has_extension(extension::PROGRESS),
            has_plugins: has_extension(extension::PLUGINS),
            has_hunks: has_extension(extension::HUNKS),
            role,
            opted_out: capabilities
                .and_then(|it| it.opt_out_notification_methods.clone())
                .unwrap_or_default()
                .into_iter()
                .collect(),
        };
        let is_first = self.client.set(client).is_ok();
        if is_first {
            let name = params.client_info.name.as_str();
            self.span.record("client", name);
        }
        is_first
    }

    /// Returns the client's rights to the configuration. Only the process that started the server,
    /// and clients inside this process, have the rights of the user's own command line.
    pub(crate) fn config_writer(&self) -> ConfigWriter {
        match self.peer.transport {
            Transport::Stdio | Transport::Memory => ConfigWriter::Local,
            Transport::Websocket | Transport::Unix | Transport::Relay => ConfigWriter::Remote,
        }
    }

    /// Whether a turn of the client may open a stored thread. A client of the unextended protocol
    /// would wait for events that it does not receive, unless its subscription moves here from
    /// another process. One to a loaded thread does not count: an unloaded thread has none.
    pub(crate) fn may_open(&self, id: ThreadId) -> bool {
        let client = self.client();
        client.is_some_and(|it| it.wants_seq || it.has_idempotency) || self.relay.follows(id)
    }

    /// Removes a thread that the client no longer wants to follow.
    pub(crate) fn end_subscription(&self, id: ThreadId) {
        self.threads().remove(&id);
        self.request_ids.close_all(id);
    }

    /// Whether the client may only read.
    pub(crate) fn is_observer(&self) -> bool {
        self.client().is_some_and(|it| it.role == Role::Observer)
    }

    /// Sends a notification, unless the client opted out of it.
    pub(crate) fn notify(&self, notification: &Notification) {
        self.tell_with_seq(notification, None);
    }

    /// Whether the client has sent `initialize`, and did not opt out of this.
    pub(crate) fn receives(&self, method: &str) -> bool {
        let client = self.client();
        client.is_some_and(|it| !it.opted_out.contains(method))
    }

    /// Sends the last notification about a thread's record, with the record's sequence number if
    /// the client wants it.
    pub(crate) fn tell_with_seq(&self, message: &Notification, seq: Option<u64>) {
        let method = message.method();
        // Before the opt-out, because a resolved request is no longer open.
        let message = self.with_ids_of_client(message);
        if self.receives(method) {
            let seq = seq.filter(|_| self.client().is_some_and(|it| it.wants_seq));
            self.outgoing
                .send(notification(method, &*message, Some(now().0), seq));
        }
    }

    /// Sends a request to the client. The answer has the same id, and comes on this connection or
    /// another.
    pub(crate) fn send_request(&self, id: &RequestId, method: &str, params: &Value) {
        let id = match id {
            RequestId::String(name) if self.has_integer_ids() => {
                Id::Integer(self.request_ids.open(name))
            }
            RequestId::String(name) => Id::String(name.clone()),
            RequestId::Integer(number) => Id::Integer(*number),
        };
        match request(&id, method, params) {
            Ok(frame) => self.outgoing.send(frame),
            Err(error) => {
                tracing::error!(
                    connection = self.number,
                    method,
                    %error,
                    "a request to a client cannot be serialised"
                );
            }
        }
    }

    /// Whether server requests have integer ids for the client: those of other clients are texts.
    fn has_integer_ids(&self) -> bool {
        self.client().is_some_and(|it| !it.wants_seq)
    }

    /// Returns a notification with the ids that the client sees.
    fn with_ids_of_client<'a>(&self, message: &'a Notification) -> Cow<'a, Notification> {
        let Notification::ServerRequestResolved(resolved) = message else {
            return Cow::Borrowed(message);
        };
        match &resolved.request_id {
            RequestId::String(name) if self.has_integer_ids() => {
                let mut resolved = resolved.clone();
                resolved.request_id = RequestId::Integer(self.request_ids.close(name));
                Cow::Owned(resolved.into())
            }
            _ => Cow::Borrowed(message),
        }
    }

    /// Returns a request of another process with the id that the client sees.
    pub(crate) fn request_of_client(&self, frame: Bytes) -> Bytes {
        self.with_number(frame, "/id", |name| self.request_ids.open(name))
    }

    /// Returns a `serverRequest/resolved` of another process with the id that the client sees.
    pub(crate) fn resolved_of_client(&self, frame: Bytes) -> Bytes {
        self.with_number(frame, "/params/requestId", |name| {
            self.request_ids.close(name)
        })
    }

    /// Returns a frame with the integer for the text at this place, if the client has such ids.
    fn with_number(&self, frame: Bytes, pointer: &str, number: impl Fn(&str) -> i64) -> Bytes {
        if !self.has_integer_ids() {
            return frame;
        }
        let Ok(mut message) = serde_json::from_slice::<Value>(&frame) else {
            return frame;
        };
        if let Some(id) = message.pointer_mut(pointer)
            && let Some(name) = id.as_str()
        {
            *id = number(name).into();
        }
        serde_json::to_vec(&message).map_or(frame, Bytes::from)
    }

    /// Returns the id that the thread gave to a request which the client answers.
    pub(crate) fn id_of_thread(&self, id: Id) -> Id {
        match id {
            Id::Integer(number) => {
                let name = self.request_ids.name(number);
                name.map_or(Id::Integer(number), Id::String)
            }
            id => id,
        }
    }

    /// Waits until there is capacity for a request of this many bytes, or until the timeout.
    /// Meanwhile the client is not read.
    pub(crate) async fn reserve(&self, bytes: usize) {
        let capacity = async {
            loop {
                let finished = self.finished.notified();
                if self.has_capacity(bytes) {
                    return;
                }
                finished.await;
            }
        };
        // A request that finds no capacity is rejected as overloaded.
        let _ = timeout(CAPACITY_TIMEOUT, capacity).await;
    }

    /// Whether there is capacity; if not, finishing requests notify the waiting one.
    fn has_capacity(&self, bytes: usize) -> bool {
        let mut running = self.running();
        running.is_waited_for = !running.has_capacity(bytes, self.running_bytes_max);
        !running.is_waited_for
    }

    /// Registers a running request of this many bytes.
    pub(crate) fn begin(&self, id: &Id, bytes: usize) -> Result<(), BusyReason> {
        let mut running = self.running();
        if running.requests.contains_key(id) {
            return Err(BusyReason::SameId);
        }
        if running.requests.len() >= self.running_max
            || !running.has_capacity(bytes, self.running_bytes_max)
        {
            return Err(BusyReason::TooMany);
        }
        running.requests.insert(id.clone(), bytes);
        running.bytes += bytes;
        Ok(())
    }

    /// Sends a response and unregisters its request, in one step. The client may reuse the id as
    /// soon as it has the response, and code that waits for the last response must find it sent.
    pub(crate) fn answer(&self, id: &Id, frame: Bytes) {
        let mut running = self.running();
        let bytes = running.requests.remove(id).unwrap_or(0);
        running.bytes -= bytes;
        self.outgoing.send(frame);
        if running.requests.is_empty() || running.is_waited_for {
            drop(running);
            self.finished.notify_waiters();
        }
    }

    /// Resolves when no request runs.
    pub(crate) async fn idle(&self) {
        loop {
            let finished = self.finished.notified();
            if self.running().requests.is_empty() {
                return;
            }
            finished.await;
        }
    }

    /// Whether the client can no longer receive a response. Requests that have not begun are
    /// dropped then, and reads stop; a change that has begun is completed.
    pub(crate) fn is_gone(&self) -> bool {
        self.outgoing.is_gone()
    }

    /// Ends all watches and processes, when the client disconnects.
    pub(crate) fn end(&self) {
        self.processes.end_all();
        self.watches().clear();
        self.counts.report(self.number);
    }

    pub(crate) fn watches(&self) -> MutexGuard<'_, HashMap<String, Watch>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn threads(&self) -> MutexGuard<'_, HashSet<ThreadId>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the threads that the client follows, here and in other processes.
    pub(crate) fn followed_threads(&self) -> Vec<ThreadId> {
        let mut threads: Vec<ThreadId> = self.threads().iter().copied().collect();
        threads.extend(self.relay.threads());
        threads
    }

    fn running(&self) -> MutexGuard<'_, RunningRequests> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of the frames of a connection.
#[derive(Debug, Default)]
pub(crate) struct FrameCounts {
    requests: AtomicU64,
    refused: AtomicU64,
    noise: AtomicU64,
    too_long: AtomicU64,
}

impl FrameCounts {
    /// Logs the frames that were not accepted as requests, if there were any.
    fn report(&self, connection: u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (refused, dropped, too_long) = (
            count(&self.refused),
            count(&self.noise),
            count(&self.too_long),
        );
        if refused + dropped + too_long > 0 {
            let requests = count(&self.requests);
            tracing::warn!(
                connection,
                requests,
                refused,
                dropped,
                too_long,
                "a client sent invalid frames; see docs/frames.md"
            );
        }
    }

    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn noise(&self) {
        self.noise.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn too_long(&self) {
        self.too_long.fetch_add(1, Ordering::Relaxed);
    }
}
