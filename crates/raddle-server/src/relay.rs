//! Threads that another process of this home has. Requests about them go there, and what is told of them comes
//! from there; when that process dies or leaves a thread, whoever hears of it here goes on here.
//!
//! A client has one way to each process it needs. Over there it is a client like any other, as it
//! introduced itself here.

mod forwarded_request;
mod peer_link;
mod reattach;

pub(crate) use self::forwarded_request::{ForwardedCall, forward};
use self::peer_link::{PeerLink, PeerResponse};

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use raddle_agent::AgentError;
use raddle_core::Seq;
use raddle_core::ports::BoxFuture;
use raddle_protocol::methods::ThreadLoadedList;
use raddle_protocol::table::Method;
use raddle_protocol::{InitializeParams, ThreadId, ThreadLoadedListResponse};
use raddle_rpc::{Close, Connection, DialError, Id, Transport};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::{Mutex as Turn, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::handlers::thread::resume::has_work;
use crate::services::ServerState;
use crate::services::threads::answers;
use crate::session::Session;
use crate::wire_error::WireError;

/// How long a thread is looked for whose process is alive and does not answer: it may be about to end.
const OWNER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long is waited before it is looked for again.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// How long other processes have to say which threads they have.
const LIST_TIMEOUT: Duration = Duration::from_millis(500);

/// How much may wait for another process when an answer comes that is for it, too.
const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// What is told from the journal, whoever has the thread, and what makes a thread of its own here.
const LOCAL_READ_METHODS: &[&str] = &[
    "thread/read",
    "thread/fork",
    "thread/turns/list",
    "thread/items/list",
    "thread/items/read",
    "thread/goal/get",
    "thread/queue/list",
];

/// What opens no thread: where the client hears of the thread from elsewhere it goes there, else it is done here.
const NON_OPENING_METHODS: &[&str] = &[
    "thread/unsubscribe",
    "thread/backgroundTerminals/list",
    "thread/backgroundTerminals/clean",
    "thread/backgroundTerminals/terminate",
];

/// The other processes of this home.
pub trait Peers: fmt::Debug + Send + Sync {
    /// The names of those that are alive; this process may be among them.
    fn alive(&self) -> BoxFuture<'_, Vec<String>>;

    /// A connection to one of them, for a client of this name.
    fn dial<'a>(
        &'a self,
        node: &'a str,
        principal: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Connection, DialError>>;
}

/// What one client has elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// How the client introduced itself.
    introduction: OnceLock<InitializeParams>,
    /// By the names of the processes. Held while one is made, so that there is one.
    links: Turn<PeerLinks>,
    subscriptions: Mutex<HashMap<ThreadId, RemoteSubscription>>,
    /// Threads on their way home, and the last record that the client was told of each. Whoever takes one out
    /// lets the client hear of it again.
    reattaching: Mutex<HashMap<ThreadId, Seq>>,
}

#[derive(Debug, Default)]
struct PeerLinks {
    open: HashMap<String, Arc<PeerLink>>,
    /// Whether the client has left, so that no more are made.
    are_closed: bool,
}

/// A thread that the client hears of from elsewhere.
#[derive(Debug)]
struct RemoteSubscription {
    link: Arc<PeerLink>,
    /// The last record it was told.
    seen: Seq,
}

/// Where a thread is.
enum ThreadLocation {
    Local,
    Remote(Arc<PeerLink>),
    /// It can be used neither here nor there.
    Unavailable(WireError),
}

impl Relay {
    /// The client is known elsewhere as it introduced itself here.
    pub(crate) fn introduce(&self, params: &InitializeParams) {
        let _ = self.introduction.set(params.clone());
    }

    /// The client leaves.
    pub(crate) async fn close(&self) {
        self.followed().clear();
        let mut ways = self.links.lock().await;
        ways.are_closed = true;
        for way in ways.open.values() {
            way.outgoing.close(Close::NORMAL);
        }
    }

    fn link_of(&self, id: ThreadId) -> Option<Arc<PeerLink>> {
        let followed = self.followed();
        let way = &followed.get(&id)?.link;
        (!way.has_ended()).then(|| way.clone())
    }

    fn is_followed(&self, id: ThreadId, way: &Arc<PeerLink>) -> bool {
        let followed = self.followed();
        followed
            .get(&id)
            .is_some_and(|it| Arc::ptr_eq(&it.link, way))
    }

    fn follow(&self, id: ThreadId, way: &Arc<PeerLink>, seen: Seq) {
        let way = way.clone();
        self.followed()
            .insert(id, RemoteSubscription { link: way, seen });
    }

    /// The client has been told a record.
    fn saw(&self, id: ThreadId, seq: Option<u64>) {
        if let (Some(followed), Some(seq)) = (self.followed().get_mut(&id), seq) {
            followed.seen = Seq(seq);
        }
    }

    /// Hears of it no more from there. Answers with the last record that it was told.
    pub(crate) fn forget(&self, id: ThreadId) -> Option<Seq> {
        self.reattaching().remove(&id);
        self.followed().remove(&id).map(|it| it.seen)
    }

    /// The threads that the client hears of from elsewhere.
    pub(crate) fn threads(&self) -> Vec<ThreadId> {
        self.followed().keys().copied().collect()
    }

    /// The threads that were heard of over a way, which is no more.
    fn left_by(&self, way: &Arc<PeerLink>) -> Vec<(ThreadId, Seq)> {
        let mut left = Vec::new();
        self.followed().retain(|id, it| {
            let is_left = Arc::ptr_eq(&it.link, way);
            if is_left {
                left.push((*id, it.seen));
            }
            !is_left
        });
        left
    }

    /// Hears of it no more from this way, if it did so. Answers as [`Relay::forget`] does.
    fn forget_from(&self, id: ThreadId, way: &Arc<PeerLink>) -> Option<Seq> {
        self.is_followed(id, way).then(|| self.forget(id))?
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<ThreadId, RemoteSubscription>> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn reattaching(&self) -> MutexGuard<'_, HashMap<ThreadId, Seq>> {
        self.reattaching
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a thread may be one that another process has. What comes from another process is not sent on: it
/// would go round in circles.
pub(crate) fn may_be_remote(rooms: &ServerState, session: &Session, id: ThreadId) -> bool {
    rooms.options.peers.is_some()
        && session.peer.transport != Transport::Relay
        && rooms.threads.live(id).is_none()
}

/// Passes a client's answer on to where the question came from; whether it did.
pub(crate) fn forward_answer(session: &Session, id: &Id, frame: &Bytes) -> bool {
    let thread = answers::named(id).map(|(thread, _)| thread);
    // What it hears of here is answered here.
    let thread = thread.filter(|it| !session.threads().contains(it));
    let Some(way) = thread.and_then(|it| session.relay.link_of(it)) else {
        return false;
    };
    if way.outgoing.queued_bytes() + frame.len() > ANSWERS_BYTES_MAX {
        session.counts.noise();
        tracing::warn!(connection = session.number, %id, "too many answers wait; one was dropped");
    } else {
        way.outgoing.send(frame.clone());
    }
    true
}

/// Looks for a thread, and opens it here if no live process has it.
async fn find(
    rooms: &Arc<ServerState>,
    session: &Arc<Session>,
    id: ThreadId,
    method: &str,
    since: Instant,
) -> ThreadLocation {
    if LOCAL_READ_METHODS.contains(&method) {
        return ThreadLocation::Local;
    }
    loop {
        if let Some(way) = session.relay.link_of(id) {
            return ThreadLocation::Remote(way);
        }
        if NON_OPENING_METHODS.contains(&method) {
            return ThreadLocation::Local;
        }
        let node = match owner(rooms, session, id).await {
            Ok(Some(node)) => node,
            Ok(None) => return ThreadLocation::Local,
            Err(error) => return ThreadLocation::Unavailable(error),
        };
        let why = match link_to(rooms, session, &node).await {
            Ok(way) => return ThreadLocation::Remote(way),
            Err(DialError::NotThere(error)) if since.elapsed() > OWNER_TIMEOUT => error.to_string(),
            Err(DialError::NotThere(_)) => {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
            Err(DialError::Refused(why)) => why,
        };
        return ThreadLocation::Unavailable(WireError::OwnedElsewhere { node, why });
    }
}

/// The live process that has a thread, if it is another one. If none has it, it is opened here, unless the client is an
/// observer: to open it would make its work begin, also if its owner died just now.
async fn owner(
    rooms: &ServerState,
    session: &Session,
    id: ThreadId,
) -> Result<Option<String>, WireError> {
    // Whatever else is wrong with the thread is said where it is used.
    if !session.is_observer() {
        return Ok(match rooms.threads.get(id).await {
            Err(AgentError::OwnedBy { node }) => Some(node),
            _ => None,
        });
    }
    match rooms.threads.peek(id).await {
        Ok(peek) if peek.live => Ok(None),
        Ok(peek) if peek.owned => Ok(peek.thread.owner().map(str::to_owned)),
        Ok(peek) if has_work(&peek) => Err(WireError::ObserverWouldBegin),
        _ => Ok(None),
    }
}

/// The client's way to another process, which is made if there is none.
async fn link_to(
    rooms: &Arc<ServerState>,
    session: &Arc<Session>,
    node: &str,
) -> Result<Arc<PeerLink>, DialError> {
    let relay = &session.relay;
    let (Some(neighbours), Some(introduction)) = (&rooms.options.peers, relay.introduction.get())
    else {
        return Err(DialError::Refused("the client is not known".to_owned()));
    };
    let mut ways = relay.links.lock().await;
    if ways.are_closed {
        return Err(DialError::Refused("the client has left".to_owned()));
    }
    ways.open.retain(|_, way| !way.has_ended());
    if let Some(way) = ways.open.get(node) {
        return Ok(way.clone());
    }
    let principal = session.peer.principal.as_deref();
    let connection = neighbours.dial(node, principal).await?;
    let way = PeerLink::open(rooms, session, connection, introduction);
    ways.open.insert(node.to_owned(), way.clone());
    Ok(way)
}

/// The threads that other processes have in memory, and which process has each. One that does not answer at
/// once is passed over.
pub(crate) async fn remote_threads(
    rooms: &Arc<ServerState>,
    session: &Arc<Session>,
) -> HashMap<ThreadId, String> {
    let mut found = HashMap::new();
    let Some(neighbours) = &rooms.options.peers else {
        return found;
    };
    let until = Instant::now() + LIST_TIMEOUT;
    let mut asked = Vec::new();
    for node in neighbours.alive().await {
        if node == rooms.threads.node() || session.peer.transport == Transport::Relay {
            continue;
        }
        let Ok(Ok(way)) = timeout_at(until, link_to(rooms, session, &node)).await else {
            continue;
        };
        let (tell, told) = oneshot::channel();
        let asker = Box::new(move |came: PeerResponse<'_>| {
            if let PeerResponse::Result(list) = came {
                let _ = tell.send(serde_json::from_str::<ThreadLoadedListResponse>(list.get()));
            }
        });
        if let Ok(nothing) = to_raw_value(&json!({})) {
            way.ask(ThreadLoadedList::NAME, &nothing, asker);
        }
        asked.push((node, told));
    }
    for (node, told) in asked {
        if let Ok(Ok(Ok(loaded))) = timeout_at(until, told).await {
            found.extend(loaded.data.into_iter().map(|id| (id, node.clone())));
        }
    }
    found
}

/// Whether an error says that another process has the thread.
fn is_elsewhere(error: &raddle_rpc::ErrorObject) -> bool {
    let data = error.data.as_ref();
    data.is_some_and(|data| data["errorInfo"] == crate::wire_error::OWNED_ELSEWHERE)
}
