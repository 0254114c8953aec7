//! `thread/delete`: delete a thread with its checkpoints. A running turn ends with it.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::ports::ReadError;
use raddle_core::{Command, Delete, Refusal, ThreadId};
use raddle_protocol::ThreadDeleteResponse;
use raddle_protocol::methods::ThreadDelete;
use tokio::sync::oneshot;

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
    // Closed when the reply is dropped, after it was sent.
    let (replied, when_replied) = oneshot::channel::<()>();
    let answer = reply.into_reply_to(move |done| {
        let _open_until_sent = &replied;
        match done {
            Ok(_) => Ok(ThreadDeleteResponse {}),
            Err(error) if is_retryable && is_deleted(&error) => Ok(ThreadDeleteResponse {}),
            Err(error) => Err(threads::refused(id, error)),
        }
    });
    state.threads.send_command(id, delete, answer).await;
    let _ = when_replied.await;
    forget_checkpoints(&state, id).await;
}

/// Removes the checkpoints of the thread if it is deleted.
async fn forget_checkpoints(state: &ServerState, id: ThreadId) {
    let peek = state.threads.peek(id).await;
    if !peek.is_err_and(|error| is_deleted(&error)) {
        return;
    }
    if let Err(error) = state.checkpoints.forget(id).await {
        tracing::warn!(thread = %id, %error, "the checkpoints of a deleted thread remain");
    }
}

/// Whether an error says that there is no such thread any more.
fn is_deleted(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::Read(ReadError::NotFound) | AgentError::Refused(Refusal::Deleted)
    )
}
