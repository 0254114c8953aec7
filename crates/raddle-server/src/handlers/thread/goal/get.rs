//! `thread/goal/get`: return a thread's goal.

use std::sync::Arc;

use raddle_core::goal_view;
use raddle_protocol::ThreadGoalGetResponse;
use raddle_protocol::methods::ThreadGoalGet;

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadGoalGet>,
) -> Result<ThreadGoalGetResponse, WireError> {
    let id = request.params.thread_id;
    let peeked = state.threads.peek(id).await;
    let peek = peeked.map_err(|error| threads::refused(id, error))?;
    let goal = goal_view(&peek.thread);
    Ok(ThreadGoalGetResponse { goal })
}
