//! `thread/checkpoint/list`: a thread's checkpoints, page by page.

use std::sync::Arc;

use raddle_protocol::ThreadCheckpointListResponse;
use raddle_protocol::methods::ThreadCheckpointList;

use crate::call::Request;
use crate::services::{ServerState, checkpoints};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadCheckpointList>,
) -> Result<ThreadCheckpointListResponse, WireError> {
    let Request { params, session } = request;
    checkpoints::check_readable(&state, &session, params.thread_id).await?;
    let stored = state.checkpoints.list(params.thread_id).await?;
    checkpoints::page(stored, &params)
}
