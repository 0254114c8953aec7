//! `thread/checkpoint/restore`: return the files, the conversation or both to their state before a
//! checkpoint. A running turn is stopped first.

use std::sync::Arc;

use raddle_core::ports::{FileRestore, RestoreFiles};
use raddle_core::view;
use raddle_protocol::ThreadCheckpointRestoreResponse;
use raddle_protocol::methods::ThreadCheckpointRestore;

use crate::call::Call;
use crate::services::checkpoints::{RestoredParts, wire};
use crate::services::{ServerState, checkpoints, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadCheckpointRestore>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let principal = threads::principal(&session);
    let prepared = async {
        let parts = RestoredParts::of(&params.what)?;
        // First, so that an invalid request stops nothing.
        let turn = checkpoints::turn_before(&state, id, &params.checkpoint_id, parts).await?;
        let request = RestoreFiles {
            checkpoint: params.checkpoint_id,
            overwrite: params.overwrite.unwrap_or_default(),
        };
        if parts.has_files() {
            state.checkpoints.preview(id, request.clone()).await?;
        }
        let stopped = threads::stop(&state.threads, id, principal.clone()).await;
        stopped.map_err(|error| threads::refused(id, error))?;
        if !parts.has_files() {
            return Ok((turn, FileRestore::default()));
        }
        let restore = state.checkpoints.restore(id, request).await?;
        Ok::<_, WireError>((turn, restore))
    };
    let (turn, restore) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => return reply.error(error),
    };
    let is_reverted = turn.is_some();
    let restored = restore.checkpoint.clone();
    let (answer, failure) = reply.into_reply_to_or_failure(move |done| {
        let response = done.map(|done| ThreadCheckpointRestoreResponse {
            restored: wire::restored(&restore),
            conflicts: wire::conflicts(&restore),
            checkpoint_id: restore.checkpoint.clone(),
            thread: is_reverted.then(|| view(done.thread)),
        });
        response.map_err(|error| threads::refused(id, error))
    });
    match turn {
        Some(turn) => state.threads.revert(id, turn, principal, answer).await,
        None => checkpoints::answer_unchanged(&state.threads, id, principal, answer).await,
    }
    checkpoints::answer_failure(&state, id, restored, failure).await;
}
