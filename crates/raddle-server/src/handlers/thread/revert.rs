//! `thread/revert`: revert a turn and those after it. A running turn is stopped first; files stay
//! as they are, unless the request names them.

use std::sync::Arc;

use raddle_core::view;
use raddle_protocol::methods::ThreadRevert;
use raddle_protocol::{RestoreScope, ThreadRevertResponse};

use crate::call::Call;
use crate::services::checkpoints::{RestoredParts, wire};
use crate::services::threads::end_cursors::ends;
use crate::services::{ServerState, checkpoints, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadRevert>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let principal = threads::principal(&session);
    let threads_handle = &state.threads;
    let refused = |error| threads::refused(id, error);
    let prepared = async {
        let scope = params.what.unwrap_or(RestoreScope::Conversation);
        let parts = RestoredParts::of(&scope)?;
        // First, so that an unknown turn, or files that cannot be restored, stop nothing.
        let found = threads_handle.find(id, &params.before_turn_id).await;
        let turn = found.map_err(refused)?.turn;
        if parts.has_files() {
            checkpoints::check_before(&state, id, &turn).await?;
        }
        let stopped = threads::stop(threads_handle, id, principal.clone()).await;
        stopped.map_err(refused)?;
        let before = parts.has_conversation().then_some(turn.from);
        let remaining = ends(threads_handle, id, before).await.map_err(refused)?;
        // Last, so that only the revert itself can fail after it.
        let restore = match parts.has_files() {
            true => Some(checkpoints::restore_before(&state, id, &turn).await?),
            false => None,
        };
        let turn = parts.has_conversation().then_some(turn);
        Ok::<_, WireError>((turn, restore, remaining))
    };
    let (turn, restore, remaining) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => return reply.error(error),
    };
    let restored = restore.as_ref().and_then(|it| it.checkpoint.clone());
    let checkpoint_id = restored.clone();
    let (answer, failure) = reply.into_reply_to_or_failure(move |done| {
        let reverted = done.map(|done| ThreadRevertResponse {
            thread: view(done.thread),
            items_backwards_cursor: remaining.items.clone(),
            turns_backwards_cursor: remaining.turns.clone(),
            restored: restore.as_ref().map(wire::restored),
            conflicts: restore.as_ref().map(wire::conflicts),
            checkpoint_id: checkpoint_id.clone(),
        });
        reverted.map_err(|error| threads::refused(id, error))
    });
    match turn {
        Some(turn) => threads_handle.revert(id, turn, principal, answer).await,
        None => checkpoints::answer_unchanged(threads_handle, id, principal, answer).await,
    }
    checkpoints::answer_failure(&state, id, restored, failure).await;
}
