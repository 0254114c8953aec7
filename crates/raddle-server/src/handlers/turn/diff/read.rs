//! `turn/diff/read`: the file changes of a turn.

use std::sync::Arc;

use raddle_core::ports::{CheckpointError, CheckpointRange};
use raddle_protocol::TurnDiffReadResponse;
use raddle_protocol::methods::TurnDiffRead;

use crate::call::Request;
use crate::services::checkpoints::wire;
use crate::services::{ServerState, checkpoints, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<TurnDiffRead>,
) -> Result<TurnDiffReadResponse, WireError> {
    let Request { params, session } = request;
    let (id, turn) = (params.thread_id, params.turn_id);
    checkpoints::check_readable(&state, &session, id).await?;
    let _reservation = threads::reserve_answer(&session).await?;
    let read = state
        .checkpoints
        .diff(id, CheckpointRange::Turn(turn.clone()));
    let diff = match read.await {
        Err(error @ CheckpointError::NoCheckpointOfTurn) => {
            // A turn that does not exist has an error of its own. A reverted turn keeps its
            // checkpoint, so the history alone does not say which turns exist.
            let found = state.threads.find(id, &turn).await;
            found.map_err(|error| threads::refused(id, error))?;
            return Err(error.into());
        }
        read => read?,
    };
    Ok(TurnDiffReadResponse {
        diff: wire::diff(diff),
    })
}
