//! Relay to threads that another process of this home owns. Requests about them are forwarded
//! there, and their events come from there. When that process dies or unloads a thread, the
//! subscriptions continue here.
//!
//! A client has one link to each process it needs. There it is a client like any other, with the
//! `initialize` params that it sent here.

mod forwarded_request;
mod links;
mod peer_link;
mod reattach;

pub(crate) use self::forwarded_request::route;
pub(crate) use self::links::Relay;
use self::links::{PeerLink, PeerResponse};

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use raddle_agent::AgentError;
use raddle_protocol::methods::ThreadLoadedList;
use raddle_protocol::table::{Method, ServedBy};
use raddle_protocol::{ThreadId, ThreadLoadedListResponse};
use raddle_rpc::{DialError, InboundResponse, Transport, answer, refusal};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

use crate::peers::{PeerCaller, PeerNode};
use crate::services::ServerState;
use crate::services::threads::{self, answers};
use crate::session::Session;
use crate::wire_error::WireError;

/// Delay between two retries.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// How long other processes have to list their threads.
const LIST_TIMEOUT: Duration = Duration::from_millis(500);

/// Limit: answers of one client that wait for another process of the home; beyond it, the answer is
/// dropped and logged.
const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// Location of a thread.
enum ThreadLocation {
    Local,
    Remote(Arc<PeerLink>),
    /// It can be used neither here nor there.
    Unavailable(WireError),
}

/// Whether another process may own a thread. Requests from another process are not forwarded: they
/// would go round in circles.
pub(crate) fn may_be_remote(state: &ServerState, session: &Session, id: ThreadId) -> bool {
    state.options.peers.is_some()
        && session.peer.transport != Transport::Relay
        && state.threads.live(id).is_none()
}

/// Forwards a client's answer to the process that sent the request; returns whether it did. The
/// client's frame has this many bytes.
pub(crate) fn forward_answer(
    session: &Session,
    response: &InboundResponse<'_>,
    bytes: usize,
) -> bool {
    let id = &response.id;
    let thread = answers::request_of_id(id).map(|(thread, _)| thread);
    // Requests of local subscriptions are answered here.
    let thread = thread.filter(|it| !session.threads().contains(it));
    let Some(link) = thread.and_then(|it| session.relay.link_of(it)) else {
        return false;
    };
    if link.outgoing.queued_bytes() + bytes > ANSWERS_BYTES_MAX {
        session.counts.noise();
        tracing::warn!(
            connection = session.number,
            ?id,
            "too many pending answers; one was dropped"
        );
    } else {
        link.outgoing.send(match &response.outcome {
            Ok(result) => answer(id, result),
            Err(error) => refusal(Some(id), error),
        });
    }
    true
}

/// Locates a thread for a request. For a request that its owner serves, opens it here if no live
/// process owns it.
async fn find(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    id: ThreadId,
    served_by: ServedBy,
    since: Instant,
) -> ThreadLocation {
    if matches!(served_by, ServedBy::AnyNode | ServedBy::Creator) {
        return ThreadLocation::Local;
    }
    loop {
        if let Some(link) = session.relay.link_of(id) {
            return ThreadLocation::Remote(link);
        }
        if served_by == ServedBy::Subscription {
            return ThreadLocation::Local;
        }
        let opens = served_by != ServedBy::Loaded || session.may_open(id);
        let node = match owner(state, session, id, opens).await {
            Ok(Some(node)) => node,
            Ok(None) => return ThreadLocation::Local,
            Err(error) => return ThreadLocation::Unavailable(error),
        };
        let why = match link_to(state, session, &node).await {
            Ok(link) => return ThreadLocation::Remote(link),
            // It may be about to end, and then another node takes the thread over.
            Err(DialError::Unreachable(error))
                if since.elapsed() > state.threads.timeouts().take_over =>
            {
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

/// Returns the live process that owns a thread, if it is another one. If none owns it and `opens`
/// is set, opens it here, unless the client is an observer: opening it would start its work, also
/// if its owner died just now.
async fn owner(
    state: &ServerState,
    session: &Session,
    id: ThreadId,
    opens: bool,
) -> Result<Option<String>, WireError> {
    // Any other problem with the thread is reported where it is used.
    if !session.is_observer() && opens {
        return Ok(match state.threads.get(id).await {
            Err(AgentError::OwnedBy { node }) => Some(node),
            _ => None,
        });
    }
    match state.threads.peek(id).await {
        Ok(peek) if peek.is_loaded() => Ok(None),
        Ok(peek) if peek.is_owned() => Ok(peek.thread.owner().map(str::to_owned)),
        Ok(peek) if opens && threads::has_work(&peek) => Err(WireError::ObserverWouldBegin),
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
    let caller = PeerCaller {
        principal: session.peer.principal.as_deref(),
    };
    let connection = peers.dial(node, caller).await?;
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
    for PeerNode { name: node } in peers.alive().await {
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
