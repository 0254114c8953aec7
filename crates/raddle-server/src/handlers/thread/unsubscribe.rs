//! `thread/unsubscribe`: hear no more of a thread. It goes on without this client.

use std::sync::Arc;

use raddle_agent::Unsubscribed;
use raddle_protocol::methods::ThreadUnsubscribe;
use raddle_protocol::{ThreadUnsubscribeResponse, ThreadUnsubscribeStatus};

use crate::call::Call;
use crate::rooms::{Rooms, threads};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ThreadUnsubscribe>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        session.threads().remove(&id);
        let ear = threads::ear(&session);
        let status = match rooms.threads.unsubscribe(id, ear).await {
            Unsubscribed::Done => ThreadUnsubscribeStatus::Unsubscribed,
            Unsubscribed::NotSubscribed => ThreadUnsubscribeStatus::NotSubscribed,
            Unsubscribed::NotLive => ThreadUnsubscribeStatus::NotLoaded,
        };
        reply.ok(&ThreadUnsubscribeResponse { status });
    });
}
