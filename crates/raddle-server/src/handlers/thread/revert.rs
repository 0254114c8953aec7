//! `thread/revert`: take back a turn and those after it. What runs is stopped first; files stay as they are.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::view;
use raddle_protocol::ThreadRevertResponse;
use raddle_protocol::methods::ThreadRevert;

use crate::call::Call;
use crate::services::threads::end_cursors::ends;
use crate::services::{ServerState, threads};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadRevert>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let principal = threads::principal(&session);
        let all = &rooms.threads;
        let prepared = async {
            // A turn that is not there stops nothing.
            let turn = all.find(id, &params.before_turn_id).await?.turn;
            threads::stop(all, id, principal.clone()).await?;
            let left = ends(all, id, Some(turn.from)).await?;
            Ok::<_, AgentError>((turn, left))
        };
        let (turn, left) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => return reply.error(threads::refused(id, error)),
        };
        let answer = reply.into_reply_to(move |done| {
            let reverted = done.map(|done| ThreadRevertResponse {
                thread: view(done.thread),
                items_backwards_cursor: left.items.clone(),
                turns_backwards_cursor: left.turns.clone(),
            });
            reverted.map_err(|error| threads::refused(id, error))
        });
        all.revert(id, turn, principal, answer).await;
    });
}
