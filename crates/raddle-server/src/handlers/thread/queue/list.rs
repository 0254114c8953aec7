//! `thread/queue/list`: a thread's queue, page by page.

use std::sync::Arc;

use raddle_protocol::methods::ThreadQueueList;

use crate::call::Call;
use crate::services::threads::queue;
use crate::services::{ServerState, threads};
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ThreadQueueList>) {
    let Call { params, reply, .. } = call;
    let state = state.clone();
    spans::spawn(async move {
        let id = params.thread_id;
        let peeked = state.threads.peek(id).await;
        let peeked = peeked.map_err(|error| threads::refused(id, error));
        reply.finish(peeked.and_then(|peek| queue::page(&peek.thread, &params)));
    });
}
