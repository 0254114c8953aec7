//! `thread/diff/read`: the file changes of some checkpoints together.

use std::sync::Arc;

use raddle_core::ports::CheckpointRange;
use raddle_protocol::ThreadDiffReadResponse;
use raddle_protocol::methods::ThreadDiffRead;

use crate::call::Request;
use crate::services::checkpoints::wire;
use crate::services::{ServerState, checkpoints, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadDiffRead>,
) -> Result<ThreadDiffReadResponse, WireError> {
    let Request { params, session } = request;
    let id = params.thread_id;
    checkpoints::check_readable(&state, &session, id).await?;
    let _reservation = threads::reserve_answer(&session).await?;
    let range = CheckpointRange::Between {
        from: params.from,
        to: params.to,
    };
    let diff = state.checkpoints.diff(id, range).await?;
    Ok(ThreadDiffReadResponse {
        diff: wire::diff(diff),
    })
}
