//! `thread/queue/delete`: remove queued input.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::{Command, ItemId, Refusal, Unqueue};
use raddle_protocol::ThreadQueueDeleteResponse;
use raddle_protocol::methods::ThreadQueueDelete;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadQueueDelete>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let unqueue = Command::Unqueue(Unqueue {
        item: ItemId::from(params.queued_submission_id.as_str()),
        principal: threads::principal(&session),
    });
    let answer = reply.into_reply_to(move |done| {
        let deleted = match done {
            Ok(_) => Ok(true),
            Err(AgentError::Refused(Refusal::NotQueued)) => Ok(false),
            Err(error) => Err(threads::refused(id, error)),
        };
        deleted.map(|deleted| ThreadQueueDeleteResponse { deleted })
    });
    state.threads.send_command(id, unqueue, answer).await;
}
