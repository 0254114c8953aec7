//! `thread/unsubscribe`: end the subscription to a thread. The thread goes on.

use std::sync::Arc;

use raddle_agent::UnsubscribeResult;
use raddle_protocol::methods::ThreadUnsubscribe;
use raddle_protocol::{ThreadUnsubscribeResponse, ThreadUnsubscribeStatus};

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadUnsubscribe>,
) -> Result<ThreadUnsubscribeResponse, WireError> {
    let Request { params, session } = request;
    let id = params.thread_id;
    session.end_subscription(id);
    let subscriber = threads::session_subscriber(&session);
    let status = match state.threads.unsubscribe(id, subscriber).await {
        UnsubscribeResult::Done => ThreadUnsubscribeStatus::Unsubscribed,
        UnsubscribeResult::NotSubscribed => ThreadUnsubscribeStatus::NotSubscribed,
        UnsubscribeResult::NotLive => ThreadUnsubscribeStatus::NotLoaded,
    };
    Ok(ThreadUnsubscribeResponse { status })
}
