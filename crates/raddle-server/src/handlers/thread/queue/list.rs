//! `thread/queue/list`: look at a thread's queue, page by page.

use std::sync::Arc;

use raddle_protocol::methods::ThreadQueueList;

use crate::call::Call;
use crate::services::threads::queue;
use crate::services::{ServerState, threads};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadQueueList>) {
    let Call { params, reply, .. } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let found = rooms.threads.peek(id).await;
        let found = found.map_err(|error| threads::refused(id, error));
        reply.finish(found.and_then(|peek| queue::page(&peek.thread, &params)));
    });
}
