//! `thread/unsubscribe`: end the subscription to a thread. The thread goes on.

use std::sync::Arc;

use raddle_agent::UnsubscribeResult;
use raddle_protocol::methods::ThreadUnsubscribe;
use raddle_protocol::{ThreadUnsubscribeResponse, ThreadUnsubscribeStatus};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ThreadUnsubscribe>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let state = state.clone();
    spans::spawn(async move {
        let id = params.thread_id;
        session.threads().remove(&id);
        let subscriber = threads::session_subscriber(&session);
        let status = match state.threads.unsubscribe(id, subscriber).await {
            UnsubscribeResult::Done => ThreadUnsubscribeStatus::Unsubscribed,
            UnsubscribeResult::NotSubscribed => ThreadUnsubscribeStatus::NotSubscribed,
            UnsubscribeResult::NotLive => ThreadUnsubscribeStatus::NotLoaded,
        };
        reply.ok(&ThreadUnsubscribeResponse { status });
    });
}
