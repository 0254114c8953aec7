//! `thread/goal/clear`: remove a thread's goal. Every client is notified, if there was one.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::{ClearGoal, Command, Refusal};
use raddle_protocol::ThreadGoalClearResponse;
use raddle_protocol::methods::ThreadGoalClear;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadGoalClear>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let clear = Command::ClearGoal(ClearGoal {
        principal: threads::principal(&session),
    });
    let answer = reply.into_reply_to(move |done| {
        let cleared = match done {
            Ok(_) => Ok(true),
            Err(AgentError::Refused(Refusal::NoGoal)) => Ok(false),
            Err(error) => Err(threads::refused(id, error)),
        };
        cleared.map(|cleared| ThreadGoalClearResponse { cleared })
    });
    state.threads.send_command(id, clear, answer).await;
}
