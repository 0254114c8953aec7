//! What is known of one connection.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use raddle_agent::Subscriber;
use raddle_protocol::{InitializeParams, Notification, RequestId, ThreadId, extension};
use raddle_rpc::{Id, Outgoing, Peer, Transport, notification, request};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use crate::disk::DiskExecutor;
use crate::metrics::Metrics;
use crate::relay::Relay;
use crate::services::ServerState;
use crate::services::config::ConfigWriter;
use crate::services::processes::Processes;
use crate::services::watches::Watch;

/// How much of a client's answers may wait until their threads take them.
const ANSWERS_KIB_MAX: usize = 64 << 10;

static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// How many jobs of one connection may wait for a disk at once; the rest stand in line. A connection
/// whose disk hangs keeps this many threads and no more.
const DISK_JOBS_MAX: usize = 16;

/// How long a request waits for others to finish before there is room for its bytes.
const CAPACITY_TIMEOUT: Duration = Duration::from_secs(30);

/// One connection: who is there, what it may do, what it has running.
pub(crate) struct Session {
    /// For the log.
    pub(crate) number: u64,
    pub(crate) peer: Peer,
    pub(crate) outgoing: Outgoing,
    /// The connection's share of the threads that wait for disks.
    pub(crate) disk: DiskExecutor,
    pub(crate) counts: FrameCounts,
    /// The server's own counts.
    pub(crate) metrics: Arc<Metrics>,
    client: OnceLock<ClientProfile>,
    running: Mutex<RunningRequests>,
    running_max: usize,
    running_bytes_max: usize,
    /// Woken when nothing runs any more, and when there may be room for one who waits for it.
    finished: Notify,
    /// The client's file watches by its names for them.
    pub(crate) watches: Mutex<HashMap<String, Watch>>,
    /// What the client runs.
    pub(crate) processes: Processes,
    /// The connection as one who hears of threads.
    pub(crate) subscriber: OnceLock<Arc<dyn Subscriber>>,
    /// The threads it asked to hear of.
    threads: Mutex<HashSet<ThreadId>>,
    /// For answers that wait until their threads take them.
    pub(crate) answers: Arc<Semaphore>,
    /// What the client has in other processes.
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

/// The client as it introduced itself.
#[derive(Debug)]
pub(crate) struct ClientProfile {
    pub(crate) name: String,
    pub(crate) experimental: bool,
    /// Whether it is told the numbers of records.
    pub(crate) wants_seq: bool,
    /// Whether it may give ids to its requests.
    pub(crate) has_idempotency: bool,
    /// Whether it is told what turns wait for.
    pub(crate) wants_progress: bool,
    pub(crate) role: Role,
    opted_out: HashSet<String>,
}

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Whatever its connection may.
    Driver,
    /// Only look.
    Observer,
}

/// The requests that run.
#[derive(Debug, Default)]
struct RunningRequests {
    /// Each with how many bytes it came in.
    requests: HashMap<Id, usize>,
    /// All of these bytes.
    bytes: usize,
    /// Whether someone waits for room.
    is_awaited: bool,
}

impl RunningRequests {
    /// Whether a request of so many bytes may join the others. One alone always may.
    fn has_capacity(&self, bytes: usize, bytes_max: usize) -> bool {
        self.bytes == 0 || self.bytes.saturating_add(bytes) <= bytes_max
    }
}

/// Why a request may not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusyReason {
    /// A request with this id is still running.
    SameId,
    /// Too many are running, or too large ones.
    TooMany,
}

impl Session {
    pub(crate) fn new(peer: Peer, outgoing: Outgoing, rooms: &ServerState) -> Self {
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            peer,
            disk: DiskExecutor::of_client(&rooms.disks, DISK_JOBS_MAX),
            outgoing,
            counts: FrameCounts::default(),
            metrics: rooms.metrics.clone(),
            client: OnceLock::new(),
            running: Mutex::default(),
            running_max: rooms.options.requests_max,
            running_bytes_max: rooms.options.requests_bytes_max,
            finished: Notify::new(),
            watches: Mutex::default(),
            processes: Processes::default(),
            subscriber: OnceLock::new(),
            threads: Mutex::default(),
            answers: Arc::new(Semaphore::new(ANSWERS_KIB_MAX)),
            relay: Relay::default(),
        }
    }

    /// The client, once it has introduced itself.
    pub(crate) fn client(&self) -> Option<&ClientProfile> {
        self.client.get()
    }

    /// Takes the introduction; false if there was one already.
    pub(crate) fn introduce(&self, params: &InitializeParams, role: Role) -> bool {
        let wishes = params.capabilities.as_ref();
        let extensions = wishes.and_then(|it| it.extensions.as_ref());
        let opted = |name: &str| extensions.is_some_and(|it| it.contains_key(name));
        let client = ClientProfile {
            name: params.client_info.name.clone(),
            experimental: wishes.is_some_and(|it| it.experimental_api),
            wants_seq: opted(extension::SEQ),
            has_idempotency: opted(extension::IDEMPOTENCY),
            wants_progress: opted(extension::PROGRESS),
            role,
            opted_out: wishes
                .and_then(|it| it.opt_out_notification_methods.clone())
                .unwrap_or_default()
                .into_iter()
                .collect(),
        };
        self.client.set(client).is_ok()
    }

    /// Who the client is to the configuration: only the process that started the server, and what is inside of this
    /// one, has the rights of the user's own command line.
    pub(crate) fn config_writer(&self) -> ConfigWriter {
        match self.peer.transport {
            Transport::Stdio | Transport::Memory => ConfigWriter::Local,
            Transport::Websocket | Transport::Unix | Transport::Relay => ConfigWriter::Remote,
        }
    }

    /// Whether the client may only look.
    pub(crate) fn is_observer(&self) -> bool {
        self.client().is_some_and(|it| it.role == Role::Observer)
    }

    /// Tells the client, unless it asked not to hear this.
    pub(crate) fn tell(&self, told: &Notification) {
        self.tell_numbered(told, None);
    }

    /// Whether the client is known, and did not ask not to hear this.
    pub(crate) fn hears_of(&self, method: &str) -> bool {
        let client = self.client();
        client.is_some_and(|it| !it.opted_out.contains(method))
    }

    /// Tells the client what is the last word about a thread's record, with the record's number if it asked for
    /// numbers.
    pub(crate) fn tell_numbered(&self, told: &Notification, seq: Option<u64>) {
        let method = told.method();
        if self.hears_of(method) {
            let seq = seq.filter(|_| self.client().is_some_and(|it| it.wants_seq));
            self.outgoing
                .send(notification(method, told, Some(now_ms()), seq));
        }
    }

    /// Asks the client something. Its answer comes back under the same id, on this connection or another.
    pub(crate) fn ask(&self, id: &RequestId, method: &str, params: &Value) {
        let id = match id {
            RequestId::Integer(number) => Id::Integer(*number),
            RequestId::String(text) => Id::String(text.clone()),
        };
        match request(&id, method, params) {
            Ok(frame) => self.outgoing.send(frame),
            Err(error) => tracing::error!(method, %error, "a question cannot be written"),
        }
    }

    /// Waits until there is room for a request that came in so many bytes, for as long as that may
    /// take. Meanwhile the client is not read.
    pub(crate) async fn reserve(&self, bytes: usize) {
        let room = async {
            loop {
                let finished = self.finished.notified();
                if self.has_capacity(bytes) {
                    return;
                }
                finished.await;
            }
        };
        // What is left without room is refused like one too many.
        let _ = timeout(CAPACITY_TIMEOUT, room).await;
    }

    /// Whether there is room; if not, those who finish will wake who waits for it.
    fn has_capacity(&self, bytes: usize) -> bool {
        let mut running = self.running();
        running.is_awaited = !running.has_capacity(bytes, self.running_bytes_max);
        !running.is_awaited
    }

    /// Notes that a request runs, which came in so many bytes.
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

    /// Sends a request's answer and notes that it was answered, in one step. The client may use the id
    /// again as soon as it has the answer, and who waits for the last answer must find it sent.
    pub(crate) fn answer(&self, id: &Id, frame: Bytes) {
        let mut running = self.running();
        let bytes = running.requests.remove(id).unwrap_or(0);
        running.bytes -= bytes;
        self.outgoing.send(frame);
        if running.requests.is_empty() || running.is_awaited {
            drop(running);
            self.finished.notify_waiters();
        }
    }

    /// Resolves when nothing runs.
    pub(crate) async fn idle(&self) {
        loop {
            let finished = self.finished.notified();
            if self.running().requests.is_empty() {
                return;
            }
            finished.await;
        }
    }

    /// Whether nobody is there any more to take an answer. What has not begun is then not begun, and what
    /// only looks stops; what has begun to change something is brought to its end.
    pub(crate) fn is_gone(&self) -> bool {
        self.outgoing.is_gone()
    }

    /// The client is leaving: nothing is watched, and nothing runs.
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

    fn running(&self) -> MutexGuard<'_, RunningRequests> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Milliseconds since the epoch.
fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// What came over a connection.
#[derive(Debug, Default)]
pub(crate) struct FrameCounts {
    requests: AtomicU64,
    refused: AtomicU64,
    noise: AtomicU64,
    too_long: AtomicU64,
}

impl FrameCounts {
    /// Says in the log what was not taken as a request, if anything was not.
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
                "a client sent what could not be taken; docs/frames.md says what that is"
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
