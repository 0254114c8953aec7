//! `thread/unsubscribe`: hear no more of a thread. It goes on without this client.

use std::sync::Arc;

use raddle_agent::UnsubscribeResult;
use raddle_protocol::methods::ThreadUnsubscribe;
use raddle_protocol::{ThreadUnsubscribeResponse, ThreadUnsubscribeStatus};

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadUnsubscribe>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        session.threads().remove(&id);
        let ear = threads::session_subscriber(&session);
        let status = match rooms.threads.unsubscribe(id, ear).await {
            UnsubscribeResult::Done => ThreadUnsubscribeStatus::Unsubscribed,
            UnsubscribeResult::NotSubscribed => ThreadUnsubscribeStatus::NotSubscribed,
            UnsubscribeResult::NotLive => ThreadUnsubscribeStatus::NotLoaded,
        };
        reply.ok(&ThreadUnsubscribeResponse { status });
    });
}
