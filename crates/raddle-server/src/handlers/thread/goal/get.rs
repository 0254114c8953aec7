//! `thread/goal/get`: look at a thread's goal.

use std::sync::Arc;

use raddle_core::goal_view;
use raddle_protocol::ThreadGoalGetResponse;
use raddle_protocol::methods::ThreadGoalGet;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadGoalGet>) {
    let Call { params, reply, .. } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let found = rooms.threads.peek(id).await;
        let found = found.map(|peek| ThreadGoalGetResponse {
            goal: goal_view(&peek.thread),
        });
        reply.finish(found.map_err(|error| threads::refused(id, error)));
    });
}
