//! Threads that come home from another process.

use std::future::ready;
use std::sync::Arc;

use raddle_agent::{AgentError, SubscribeRequest, SubscribeResult};
use raddle_core::ports::{BoxFuture, ReadError};
use raddle_core::{ChangeSettings, CursorStatus, Refusal, Seq};
use raddle_protocol::methods::ThreadResume;
use raddle_protocol::table::{Lane, Method, Resource};
use raddle_protocol::{ThreadClosedNotification, ThreadId};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::peer_link::{PeerLink, PeerResponse};
use super::{OWNER_TIMEOUT, RETRY_INTERVAL, ThreadLocation, find, is_elsewhere};
use crate::lanes::Pass;
use crate::services::ServerState;
use crate::services::threads;
use crate::session::Session;

/// Threads that were heard of from elsewhere, and are so no more, go on where they are now. Each in its turn: what
/// the client says of it meanwhile is done before or after.
pub(super) fn reattach_all(
    rooms: &Arc<ServerState>,
    session: &Arc<Session>,
    left: impl IntoIterator<Item = (ThreadId, Seq)>,
) {
    for (id, seen) in left {
        session.threads().insert(id);
        session.relay.reattaching().insert(id, seen);
        let (all, listener) = (rooms.clone(), session.clone());
        enter_lane(rooms, session, id, move |pass| {
            tokio::spawn(reattach(all, listener, id, pass));
        });
    }
}

/// Does something when the other requests about a thread allow it.
pub(super) fn enter_lane(
    rooms: &ServerState,
    session: &Session,
    id: ThreadId,
    job: impl FnOnce(Option<Pass>) + Send + 'static,
) {
    let lane = Lane::Exclusive(Resource::Thread(id));
    rooms.lanes.enter(lane, session.number, job);
}

/// Lets the client hear of a thread again, from after the last record that it was told: here if the thread can
/// be opened here, else from whoever was faster. Nothing is left to do if the client came back to it by itself.
async fn reattach(
    rooms: Arc<ServerState>,
    session: Arc<Session>,
    id: ThreadId,
    _turn: Option<Pass>,
) {
    let Some(seen) = session.relay.reattaching().remove(&id) else {
        return;
    };
    let since = Instant::now();
    while !session.is_gone() && session.threads().contains(&id) {
        let why = match find(&rooms, &session, id, ThreadResume::NAME, since).await {
            ThreadLocation::Remote(way) => return follow_to(&rooms, &session, &way, id, seen),
            ThreadLocation::Local => match join(&rooms, &session, id, seen).await {
                Ok(()) => return,
                // Someone else was faster.
                Err(
                    AgentError::Ended
                    | AgentError::OwnedBy { .. }
                    | AgentError::Refused(Refusal::OwnedElsewhere),
                ) if since.elapsed() < OWNER_TIMEOUT => {
                    sleep(RETRY_INTERVAL).await;
                    continue;
                }
                Err(error) => error.to_string(),
            },
            ThreadLocation::Unavailable(error) => format!("{error:?}"),
        };
        session.threads().remove(&id);
        return lose(&session, id, &why);
    }
}

/// The client hears no more of a thread, and is told so.
fn lose(session: &Session, id: ThreadId, why: &str) {
    tracing::warn!(thread = %id, why, "a client hears no more of a thread whose process ended");
    session.tell(&ThreadClosedNotification { thread_id: id }.into());
}

async fn join(
    rooms: &ServerState,
    session: &Arc<Session>,
    id: ThreadId,
    seen: Seq,
) -> Result<(), AgentError> {
    let (tell, told) = oneshot::channel();
    let newcomer = SubscribeRequest {
        subscriber: threads::session_subscriber(session),
        change: ChangeSettings::default(),
        with_usage: false,
        seen: Some(seen),
    };
    let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
        // What it missed is told exactly, or nothing is.
        let subscribed = subscribed.and_then(|it| match it.cursor {
            CursorStatus::Good => Ok(()),
            CursorStatus::Expired => Err(AgentError::Read(ReadError::BadCursor)),
        });
        let is_well = subscribed.is_ok();
        let _ = tell.send(subscribed);
        Box::pin(ready(is_well)) as BoxFuture<'static, bool>
    };
    rooms.threads.resume(id, newcomer, answer).await;
    told.await.unwrap_or(Err(AgentError::Ended))
}

/// Lets the client hear of a thread from another process, from after the last record that it was told. What the
/// client says of the thread from here on goes there too, after this.
fn follow_to(
    rooms: &Arc<ServerState>,
    session: &Arc<Session>,
    way: &Arc<PeerLink>,
    id: ThreadId,
    seen: Seq,
) {
    let params = to_raw_value(&json!({
        "threadId": id,
        "excludeTurns": true,
        "afterSeq": seen.0,
    }));
    let Ok(params) = params else {
        return;
    };
    session.threads().remove(&id);
    session.relay.follow(id, way, seen);
    let (rooms, session, to) = (rooms.clone(), session.clone(), way.clone());
    way.ask(
        ThreadResume::NAME,
        &params,
        Box::new(move |came| match came {
            // Of one that is lost, what hears that the way has ended takes care.
            PeerResponse::Result(_) | PeerResponse::Lost => {}
            PeerResponse::Error(error) if !is_elsewhere(&error) => {
                if session.relay.forget_from(id, &to).is_some() {
                    lose(&session, id, &error.message);
                }
            }
            PeerResponse::Error(_) | PeerResponse::NotSent => {
                let seen = session.relay.forget_from(id, &to);
                reattach_all(&rooms, &session, seen.map(|seen| (id, seen)));
            }
        }),
    );
}
