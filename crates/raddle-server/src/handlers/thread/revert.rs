//! `thread/revert`: revert a turn and those after it. A running turn is stopped first; files stay
//! as they are.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::view;
use raddle_protocol::ThreadRevertResponse;
use raddle_protocol::methods::ThreadRevert;

use crate::call::Call;
use crate::services::threads::end_cursors::ends;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadRevert>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let principal = threads::principal(&session);
    let threads_handle = &state.threads;
    let prepared = async {
        // First, so that an unknown turn stops nothing.
        let turn = threads_handle.find(id, &params.before_turn_id).await?.turn;
        threads::stop(threads_handle, id, principal.clone()).await?;
        let remaining = ends(threads_handle, id, Some(turn.from)).await?;
        Ok::<_, AgentError>((turn, remaining))
    };
    let (turn, remaining) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => return reply.error(threads::refused(id, error)),
    };
    let answer = reply.into_reply_to(move |done| {
        let reverted = done.map(|done| ThreadRevertResponse {
            thread: view(done.thread),
            items_backwards_cursor: remaining.items.clone(),
            turns_backwards_cursor: remaining.turns.clone(),
        });
        reverted.map_err(|error| threads::refused(id, error))
    });
    threads_handle.revert(id, turn, principal, answer).await;
}
