//! `thread/backgroundTerminals/terminate`: end one command that a thread's turn left running.

use std::sync::Arc;

use raddle_protocol::ThreadBackgroundTerminalsTerminateResponse;
use raddle_protocol::methods::ThreadBackgroundTerminalsTerminate;

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadBackgroundTerminalsTerminate>,
) -> Result<ThreadBackgroundTerminalsTerminateResponse, WireError> {
    let params = request.params;
    let id = params.thread_id;
    let peeked = state.threads.peek(id).await;
    peeked.map_err(|error| threads::refused(id, error))?;
    let terminated = state.threads.end_terminal(id, Some(&params.process_id));
    Ok(ThreadBackgroundTerminalsTerminateResponse { terminated })
}
