//! `thread/workspace/apply`: apply changes of a thread's copy to its origin. A running turn goes on in
//! the copy.

use std::sync::Arc;

use raddle_core::ports::{ApplyChanges, FileToApply, HunkToApply};
use raddle_protocol::ThreadWorkspaceApplyResponse;
use raddle_protocol::methods::ThreadWorkspaceApply;

use crate::call::Request;
use crate::services::checkpoints::wire;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadWorkspaceApply>,
) -> Result<ThreadWorkspaceApplyResponse, WireError> {
    let params = request.params;
    let id = params.thread_id;
    threads::check_exists(&state, Some(id)).await?;
    let files = params.files.map(|files| {
        let files = files.into_iter().map(|it| FileToApply {
            path: it.path,
            change: it.change_id,
            hunks: it.hunks.map(|hunks| {
                let hunks = hunks.into_iter().map(|it| HunkToApply {
                    id: it.id,
                    replacement: it.replacement,
                });
                hunks.collect()
            }),
        });
        files.collect()
    });
    let changes = ApplyChanges {
        files,
        overwrite: params.overwrite.unwrap_or_default(),
    };
    let at = threads::folder_of(&state, id).await?;
    let done = state.copies.apply(at, changes).await?;
    Ok(ThreadWorkspaceApplyResponse {
        applied: wire::restored(&done),
        conflicts: wire::conflicts(&done),
        checkpoint_id: done.checkpoint,
    })
}
