//! `thread/goal/get`: return a thread's goal.

use std::sync::Arc;

use raddle_core::goal_view;
use raddle_protocol::ThreadGoalGetResponse;
use raddle_protocol::methods::ThreadGoalGet;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ThreadGoalGet>) {
    let Call { params, reply, .. } = call;
    let state = state.clone();
    spans::spawn(async move {
        let id = params.thread_id;
        let peeked = state.threads.peek(id).await;
        let response = peeked.map(|peek| ThreadGoalGetResponse {
            goal: goal_view(&peek.thread),
        });
        reply.finish(response.map_err(|error| threads::refused(id, error)));
    });
}
