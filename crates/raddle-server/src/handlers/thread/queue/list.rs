//! `thread/queue/list`: a thread's queue, page by page.

use std::sync::Arc;

use raddle_protocol::ThreadQueueListResponse;
use raddle_protocol::methods::ThreadQueueList;

use crate::call::Request;
use crate::services::threads::queue;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadQueueList>,
) -> Result<ThreadQueueListResponse, WireError> {
    let params = request.params;
    let id = params.thread_id;
    let peeked = state.threads.peek(id).await;
    let peek = peeked.map_err(|error| threads::refused(id, error))?;
    queue::page(&peek.thread, &params)
}
