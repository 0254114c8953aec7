//! `thread/delete`: forget a thread. What runs in it ends with it.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::ports::ReadError;
use raddle_core::{Command, Delete, Refusal};
use raddle_protocol::ThreadDeleteResponse;
use raddle_protocol::methods::ThreadDelete;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadDelete>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let delete = Command::Delete(Delete {
            principal: threads::principal(&session),
        });
        // One that may have come before finds the thread gone, which is what it wants.
        let may_be_gone = reply.idempotency().is_some();
        let answer =
            reply.into_reply_to(move |done| match done {
                Err(
                    AgentError::Read(ReadError::NotFound) | AgentError::Refused(Refusal::Deleted),
                ) if may_be_gone => Ok(ThreadDeleteResponse {}),
                deleted => {
                    let deleted = deleted.map(|_| ThreadDeleteResponse {});
                    deleted.map_err(|error| threads::refused(id, error))
                }
            });
        rooms.threads.send_command(id, delete, answer).await;
    });
}
