//! `thread/backgroundTerminals/clean`: end the commands that a thread's turn left running.

use std::sync::Arc;

use raddle_protocol::ThreadBackgroundTerminalsCleanResponse;
use raddle_protocol::methods::ThreadBackgroundTerminalsClean;

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadBackgroundTerminalsClean>,
) -> Result<ThreadBackgroundTerminalsCleanResponse, WireError> {
    let id = request.params.thread_id;
    let peeked = state.threads.peek(id).await;
    peeked.map_err(|error| threads::refused(id, error))?;
    state.threads.end_terminal(id, None);
    Ok(ThreadBackgroundTerminalsCleanResponse {})
}
