//! `thread/workspace/read`: the changes of a thread's copy that its origin does not have.

use std::sync::Arc;

use raddle_protocol::methods::ThreadWorkspaceRead;
use raddle_protocol::{ThreadWorkspaceReadResponse, WorkspaceDiff, WorkspaceMode};

use crate::call::Request;
use crate::services::checkpoints::wire;
use crate::services::{ServerState, checkpoints, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadWorkspaceRead>,
) -> Result<ThreadWorkspaceReadResponse, WireError> {
    let Request { params, session } = request;
    let id = params.thread_id;
    checkpoints::check_readable(&state, &session, id).await?;
    let _reservation = threads::reserve_answer(&session).await?;
    let at = threads::folder_of(&state, id).await?;
    let changes = state.copies.changes(at, !session.is_observer());
    let Some(changes) = changes.await? else {
        return Ok(ThreadWorkspaceReadResponse {
            mode: WorkspaceMode::Shared,
            folder: None,
            origin: None,
            diff: WorkspaceDiff {
                unified: String::new(),
                files: Vec::new(),
                gaps: Vec::new(),
            },
            conflicts: Vec::new(),
            overlaps: Vec::new(),
        });
    };
    Ok(ThreadWorkspaceReadResponse {
        mode: WorkspaceMode::Copy,
        folder: Some(changes.copy.folder),
        origin: Some(changes.copy.origin),
        diff: wire::diff(changes.diff),
        conflicts: wire::file_conflicts(&changes.conflicts),
        overlaps: changes.overlaps.into_iter().map(wire::overlap).collect(),
    })
}
