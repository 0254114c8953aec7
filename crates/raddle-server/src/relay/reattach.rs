//! Reattachment: subscriptions that return from another process.

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
use tracing::Instrument;

use super::links::{PeerLink, PeerResponse};
use super::{RETRY_INTERVAL, ThreadLocation, find, is_elsewhere};
use crate::lanes::Pass;
use crate::services::ServerState;
use crate::services::threads;
use crate::session::Session;

/// Continues remote subscriptions that have ended, wherever the threads are now. Each takes its
/// thread's lane, so the client's requests on the thread run before or after it.
pub(super) fn reattach_all(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    subscriptions: impl IntoIterator<Item = (ThreadId, Seq)>,
) {
    for (id, last_seq) in subscriptions {
        session.threads().insert(id);
        session.relay.reattaching().insert(id, last_seq);
        let (task_state, task_session) = (state.clone(), session.clone());
        enter_lane(state, session, id, move |pass| {
            let span = task_session.span.clone();
            tokio::spawn(reattach(task_state, task_session, id, pass).instrument(span));
        });
    }
}

/// Runs the job when the other requests on the thread allow it.
pub(super) fn enter_lane(
    state: &ServerState,
    session: &Session,
    id: ThreadId,
    job: impl FnOnce(Option<Pass>) + Send + 'static,
) {
    let lane = Lane::Exclusive(Resource::Thread(id));
    state.lanes.enter(lane, session.number, job);
}

/// Resubscribes the client after the last record that it received: here if the thread can be opened
/// here, else at the process that was faster. Does nothing if the client has resubscribed itself.
async fn reattach(
    state: Arc<ServerState>,
    session: Arc<Session>,
    id: ThreadId,
    _pass: Option<Pass>,
) {
    let Some(last_seq) = session.relay.reattaching().remove(&id) else {
        return;
    };
    let since = Instant::now();
    let take_over_max = state.threads.timeouts().take_over;
    while !session.is_gone() && session.threads().contains(&id) {
        let why = match find(&state, &session, id, ThreadResume::SERVED_BY, since).await {
            ThreadLocation::Remote(link) => {
                return subscribe_remotely(&state, &session, &link, id, last_seq);
            }
            ThreadLocation::Local => {
                match subscribe_locally(&state, &session, id, last_seq).await {
                    Ok(()) => return,
                    // Another process opened the thread first.
                    Err(
                        AgentError::Ended
                        | AgentError::OwnedBy { .. }
                        | AgentError::Refused(Refusal::OwnedElsewhere),
                    ) if since.elapsed() < take_over_max => {
                        sleep(RETRY_INTERVAL).await;
                        continue;
                    }
                    Err(error) => error.to_string(),
                }
            }
            ThreadLocation::Unavailable(error) => format!("{error:?}"),
        };
        session.threads().remove(&id);
        return report_lost(&session, id, &why);
    }
}

/// Notifies the client that its subscription has ended.
fn report_lost(session: &Session, id: ThreadId, why: &str) {
    tracing::warn!(thread = %id, why, "a client lost its subscription to a thread whose process ended");
    session.notify(&ThreadClosedNotification { thread_id: id }.into());
}

async fn subscribe_locally(
    state: &ServerState,
    session: &Arc<Session>,
    id: ThreadId,
    last_seq: Seq,
) -> Result<(), AgentError> {
    let (sender, receiver) = oneshot::channel();
    let subscribe_request = SubscribeRequest {
        subscriber: threads::session_subscriber(session),
        change: ChangeSettings::default(),
        with_usage: false,
        cursor: Some(last_seq),
    };
    let answer = move |subscribed: Result<SubscribeResult, AgentError>| {
        // Fails rather than skip records that the client missed.
        let subscribed = subscribed.and_then(|it| match it.cursor {
            CursorStatus::Good => Ok(()),
            CursorStatus::Expired => Err(AgentError::Read(ReadError::BadCursor)),
        });
        let is_ok = subscribed.is_ok();
        let _ = sender.send(subscribed);
        Box::pin(ready(is_ok)) as BoxFuture<'static, bool>
    };
    state.threads.resume(id, subscribe_request, answer).await;
    receiver.await.unwrap_or(Err(AgentError::Ended))
}

/// Subscribes the client at another process, after the last record that it received. Later requests
/// of the client on the thread go there too, after this one.
fn subscribe_remotely(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    link: &Arc<PeerLink>,
    id: ThreadId,
    last_seq: Seq,
) {
    let params = to_raw_value(&json!({
        "threadId": id,
        "excludeTurns": true,
        "afterSeq": last_seq.0,
    }));
    let Ok(params) = params else {
        return;
    };
    session.threads().remove(&id);
    session.relay.subscribe(id, link, last_seq);
    let (state, session, target) = (state.clone(), session.clone(), link.clone());
    link.send_request(
        ThreadResume::NAME,
        &params,
        Box::new(move |response| match response {
            // A lost request is handled where the end of the link is noticed.
            PeerResponse::Result(_) | PeerResponse::Lost => {}
            PeerResponse::Error(error) if !is_elsewhere(&error) => {
                if session.relay.forget_from(id, &target).is_some() {
                    report_lost(&session, id, &error.message);
                }
            }
            PeerResponse::Error(_) | PeerResponse::NotSent => {
                let last_seq = session.relay.forget_from(id, &target);
                reattach_all(&state, &session, last_seq.map(|last_seq| (id, last_seq)));
            }
        }),
    );
}
