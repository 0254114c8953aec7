//! `fs/getMetadata`: the type of a path and when it changed.

use std::sync::Arc;

use raddle_protocol::FsGetMetadataResponse;
use raddle_protocol::methods::FsGetMetadata;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<FsGetMetadata>) {
    PathAdmission::on_disk(state, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        let admitted = admission.open(&path)?;
        let is_symlink = std::fs::symlink_metadata(&path)?.file_type().is_symlink();
        let target = admitted.metadata()?;
        Ok(FsGetMetadataResponse {
            is_directory: target.is_dir(),
            is_file: target.is_file(),
            is_symlink,
            created_at_ms: files::millis(target.created()),
            modified_at_ms: files::millis(target.modified()),
        })
    })
    .await;
}
