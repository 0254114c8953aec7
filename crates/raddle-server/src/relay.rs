//! Relay to threads that another process of this home owns. Requests about them are forwarded
//! there, and their events come from there. When that process dies or unloads a thread, the
//! subscriptions continue here.
//!
//! A client has one link to each process it needs. There it is a client like any other, with the
//! `initialize` params that it sent here.

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
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::handlers::thread::resume::has_work;
use crate::services::ServerState;
use crate::services::threads::answers;
use crate::session::Session;
use crate::wire_error::WireError;

/// Limit: time for finding the owner of a thread whose process is alive and does not respond;
/// beyond it, the server rejects the request with -32600 and names the process.
///
/// How long to retry while the owning process is alive and does not respond: it may be about to
/// end.
const OWNER_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay between two retries.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// How long other processes have to list their threads.
const LIST_TIMEOUT: Duration = Duration::from_millis(500);

/// Limit: answers of one client that wait for another process of the home; beyond it, the answer is
/// dropped and logged.
const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// Methods that read the journal, whichever process owns the thread, or that create a thread here.
const LOCAL_READ_METHODS: &[&str] = &[
    "thread/read",
    "thread/fork",
    "thread/turns/list",
    "thread/items/list",
    "thread/items/read",
    "thread/goal/get",
    "thread/queue/list",
];

/// Methods that open no thread: forwarded if the client has a remote subscription, else run here.
const NON_OPENING_METHODS: &[&str] = &[
    "thread/unsubscribe",
    "thread/backgroundTerminals/list",
    "thread/backgroundTerminals/clean",
    "thread/backgroundTerminals/terminate",
];

/// The other processes of this home.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Returns the names of those that are alive; this process may be among them.
    fn alive(&self) -> BoxFuture<'_, Vec<String>>;

    /// Connects to one of them, for a client of this name.
    fn dial<'a>(
        &'a self,
        node: &'a str,
        principal: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Connection, DialError>>;
}

/// Links and remote subscriptions of one client.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// The `initialize` params of the client.
    introduction: OnceLock<InitializeParams>,
    /// By the names of the processes. Locked while a link is opened, so that there is one.
    links: AsyncMutex<PeerLinks>,
    subscriptions: Mutex<HashMap<ThreadId, RemoteSubscription>>,
    /// Threads that are moving back here, with the last record that the client received of each.
    /// The code that removes one resubscribes the client.
    reattaching: Mutex<HashMap<ThreadId, Seq>>,
}

#[derive(Debug, Default)]
struct PeerLinks {
    open: HashMap<String, Arc<PeerLink>>,
    /// Whether the client has disconnected, so that no link is opened.
    are_closed: bool,
}

/// A thread whose events the client receives from another process.
#[derive(Debug)]
struct RemoteSubscription {
    link: Arc<PeerLink>,
    /// The last record that the client received.
    last_seq: Seq,
}

/// Location of a thread.
enum ThreadLocation {
    Local,
    Remote(Arc<PeerLink>),
    /// It can be used neither here nor there.
    Unavailable(WireError),
}

impl Relay {
    /// Stores the `initialize` params, for use with other processes.
    pub(crate) fn introduce(&self, params: &InitializeParams) {
        let _ = self.introduction.set(params.clone());
    }

    /// Closes all links, when the client disconnects.
    pub(crate) async fn close(&self) {
        self.subscriptions().clear();
        let mut links = self.links.lock().await;
        links.are_closed = true;
        for link in links.open.values() {
            link.outgoing.close(Close::NORMAL);
        }
    }

    fn link_of(&self, id: ThreadId) -> Option<Arc<PeerLink>> {
        let subscriptions = self.subscriptions();
        let link = &subscriptions.get(&id)?.link;
        (!link.has_ended()).then(|| link.clone())
    }

    fn is_subscribed(&self, id: ThreadId, link: &Arc<PeerLink>) -> bool {
        let subscriptions = self.subscriptions();
        subscriptions
            .get(&id)
            .is_some_and(|it| Arc::ptr_eq(&it.link, link))
    }

    fn subscribe(&self, id: ThreadId, link: &Arc<PeerLink>, last_seq: Seq) {
        let link = link.clone();
        self.subscriptions()
            .insert(id, RemoteSubscription { link, last_seq });
    }

    /// Stores that the client received a record.
    fn mark_received(&self, id: ThreadId, seq: Option<u64>) {
        if let (Some(subscription), Some(seq)) = (self.subscriptions().get_mut(&id), seq) {
            subscription.last_seq = Seq(seq);
        }
    }

    /// Ends the remote subscription. Returns the last record that the client received.
    pub(crate) fn forget(&self, id: ThreadId) -> Option<Seq> {
        self.reattaching().remove(&id);
        self.subscriptions().remove(&id).map(|it| it.last_seq)
    }

    /// Returns the threads with a remote subscription.
    pub(crate) fn threads(&self) -> Vec<ThreadId> {
        self.subscriptions().keys().copied().collect()
    }

    /// Ends the subscriptions over a link that has ended, and returns them.
    fn take_subscriptions_of(&self, link: &Arc<PeerLink>) -> Vec<(ThreadId, Seq)> {
        let mut ended = Vec::new();
        self.subscriptions().retain(|id, it| {
            let is_over_link = Arc::ptr_eq(&it.link, link);
            if is_over_link {
                ended.push((*id, it.last_seq));
            }
            !is_over_link
        });
        ended
    }

    /// Ends the subscription over this link, if there is one. Returns the same as
    /// [`Relay::forget`].
    fn forget_from(&self, id: ThreadId, link: &Arc<PeerLink>) -> Option<Seq> {
        self.is_subscribed(id, link).then(|| self.forget(id))?
    }

    fn subscriptions(&self) -> MutexGuard<'_, HashMap<ThreadId, RemoteSubscription>> {
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

/// Whether another process may own a thread. Requests from another process are not forwarded: they
/// would go round in circles.
pub(crate) fn may_be_remote(state: &ServerState, session: &Session, id: ThreadId) -> bool {
    state.options.peers.is_some()
        && session.peer.transport != Transport::Relay
        && state.threads.live(id).is_none()
}

/// Forwards a client's answer to the process that sent the request; returns whether it did.
pub(crate) fn forward_answer(session: &Session, id: &Id, frame: &Bytes) -> bool {
    let thread = answers::request_of_id(id).map(|(thread, _)| thread);
    // Requests of local subscriptions are answered here.
    let thread = thread.filter(|it| !session.threads().contains(it));
    let Some(link) = thread.and_then(|it| session.relay.link_of(it)) else {
        return false;
    };
    if link.outgoing.queued_bytes() + frame.len() > ANSWERS_BYTES_MAX {
        session.counts.noise();
        tracing::warn!(connection = session.number, %id, "too many pending answers; one was dropped");
    } else {
        link.outgoing.send(frame.clone());
    }
    true
}

/// Locates a thread, and opens it here if no live process owns it.
async fn find(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    id: ThreadId,
    method: &str,
    since: Instant,
) -> ThreadLocation {
    if LOCAL_READ_METHODS.contains(&method) {
        return ThreadLocation::Local;
    }
    loop {
        if let Some(link) = session.relay.link_of(id) {
            return ThreadLocation::Remote(link);
        }
        if NON_OPENING_METHODS.contains(&method) {
            return ThreadLocation::Local;
        }
        let node = match owner(state, session, id).await {
            Ok(Some(node)) => node,
            Ok(None) => return ThreadLocation::Local,
            Err(error) => return ThreadLocation::Unavailable(error),
        };
        let why = match link_to(state, session, &node).await {
            Ok(link) => return ThreadLocation::Remote(link),
            Err(DialError::Unreachable(error)) if since.elapsed() > OWNER_TIMEOUT => {
                error.to_string()
            }
            Err(DialError::Unreachable(_)) => {
                sleep(RETRY_INTERVAL).await;
                continue;
            }
            Err(DialError::Refused(why)) => why,
        };
        return ThreadLocation::Unavailable(WireError::OwnedElsewhere { node, why });
    }
}

/// Returns the live process that owns a thread, if it is another one. If none owns it, opens it
/// here, unless the client is an observer: opening it would start its work, also if its owner died
/// just now.
async fn owner(
    state: &ServerState,
    session: &Session,
    id: ThreadId,
) -> Result<Option<String>, WireError> {
    // Any other problem with the thread is reported where it is used.
    if !session.is_observer() {
        return Ok(match state.threads.get(id).await {
            Err(AgentError::OwnedBy { node }) => Some(node),
            _ => None,
        });
    }
    match state.threads.peek(id).await {
        Ok(peek) if peek.live => Ok(None),
        Ok(peek) if peek.owned => Ok(peek.thread.owner().map(str::to_owned)),
        Ok(peek) if has_work(&peek) => Err(WireError::ObserverWouldBegin),
        _ => Ok(None),
    }
}

/// Returns the client's link to another process, and opens it if there is none.
async fn link_to(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    node: &str,
) -> Result<Arc<PeerLink>, DialError> {
    let relay = &session.relay;
    let (Some(peers), Some(introduction)) = (&state.options.peers, relay.introduction.get()) else {
        return Err(DialError::Refused("the client is not known".to_owned()));
    };
    let mut links = relay.links.lock().await;
    if links.are_closed {
        return Err(DialError::Refused("the client has disconnected".to_owned()));
    }
    links.open.retain(|_, link| !link.has_ended());
    if let Some(link) = links.open.get(node) {
        return Ok(link.clone());
    }
    let principal = session.peer.principal.as_deref();
    let connection = peers.dial(node, principal).await?;
    let link = PeerLink::open(state, session, connection, introduction);
    links.open.insert(node.to_owned(), link.clone());
    Ok(link)
}

/// Returns the threads that other processes have in memory, and the process of each. Skips a
/// process that does not respond in time.
pub(crate) async fn remote_threads(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
) -> HashMap<ThreadId, String> {
    let mut owners = HashMap::new();
    let Some(peers) = &state.options.peers else {
        return owners;
    };
    let deadline = Instant::now() + LIST_TIMEOUT;
    let mut requests = Vec::new();
    for node in peers.alive().await {
        if node == state.threads.node() || session.peer.transport == Transport::Relay {
            continue;
        }
        let Ok(Ok(link)) = timeout_at(deadline, link_to(state, session, &node)).await else {
            continue;
        };
        let (sender, receiver) = oneshot::channel();
        let on_response = Box::new(move |response: PeerResponse<'_>| {
            if let PeerResponse::Result(list) = response {
                let _ = sender.send(serde_json::from_str::<ThreadLoadedListResponse>(list.get()));
            }
        });
        if let Ok(params) = to_raw_value(&json!({})) {
            link.send_request(ThreadLoadedList::NAME, &params, on_response);
        }
        requests.push((node, receiver));
    }
    for (node, receiver) in requests {
        if let Ok(Ok(Ok(loaded))) = timeout_at(deadline, receiver).await {
            owners.extend(loaded.data.into_iter().map(|id| (id, node.clone())));
        }
    }
    owners
}

/// Whether an error says that another process owns the thread.
fn is_elsewhere(error: &raddle_rpc::ErrorObject) -> bool {
    let data = error.data.as_ref();
    data.is_some_and(|data| data["errorInfo"] == crate::wire_error::OWNED_ELSEWHERE)
}
