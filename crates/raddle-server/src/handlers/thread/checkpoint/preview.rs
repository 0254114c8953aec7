//! `thread/checkpoint/preview`: what a restore of files would do.

use std::sync::Arc;

use raddle_core::ports::RestoreFiles;
use raddle_protocol::ThreadCheckpointPreviewResponse;
use raddle_protocol::methods::ThreadCheckpointPreview;

use crate::call::Request;
use crate::services::checkpoints::wire;
use crate::services::{ServerState, checkpoints};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadCheckpointPreview>,
) -> Result<ThreadCheckpointPreviewResponse, WireError> {
    let Request { params, session } = request;
    checkpoints::check_readable(&state, &session, params.thread_id).await?;
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
