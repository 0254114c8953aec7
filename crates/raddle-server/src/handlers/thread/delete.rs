//! `thread/delete`: delete a thread. A running turn ends with it.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::ports::ReadError;
use raddle_core::{Command, Delete, Refusal};
use raddle_protocol::ThreadDeleteResponse;
use raddle_protocol::methods::ThreadDelete;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadDelete>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let delete = Command::Delete(Delete {
        principal: threads::principal(&session),
    });
    // A retry finds the thread deleted, which is the requested result.
    let is_retryable = reply.idempotency().is_some();
    let answer = reply.into_reply_to(move |done| match done {
        Ok(_) => Ok(ThreadDeleteResponse {}),
        Err(error) if is_retryable && is_deleted(&error) => Ok(ThreadDeleteResponse {}),
        Err(error) => Err(threads::refused(id, error)),
    });
    state.threads.send_command(id, delete, answer).await;
}

/// Whether an error says that there is no such thread any more.
fn is_deleted(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::Read(ReadError::NotFound) | AgentError::Refused(Refusal::Deleted)
    )
}
