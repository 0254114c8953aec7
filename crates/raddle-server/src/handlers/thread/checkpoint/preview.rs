//! `thread/checkpoint/preview`: what a restore of files would do.

use std::sync::Arc;

use raddle_core::ports::RestoreFiles;
use raddle_protocol::ThreadCheckpointPreviewResponse;
use raddle_protocol::methods::ThreadCheckpointPreview;

use crate::call::Request;
use crate::services::checkpoints::wire;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadCheckpointPreview>,
) -> Result<ThreadCheckpointPreviewResponse, WireError> {
    let params = request.params;
    threads::check_exists(&state, Some(params.thread_id)).await?;
    let request = RestoreFiles {
        checkpoint: params.checkpoint_id,
        overwrite: params.overwrite.unwrap_or_default(),
    };
    let preview = state.checkpoints.preview(params.thread_id, request).await?;
    Ok(ThreadCheckpointPreviewResponse {
        restored: wire::restored(&preview),
        conflicts: wire::conflicts(&preview),
    })
}
