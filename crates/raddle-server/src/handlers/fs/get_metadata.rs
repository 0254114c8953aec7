//! `fs/getMetadata`: what a path is and when it changed.

use std::sync::Arc;

use raddle_protocol::FsGetMetadataResponse;
use raddle_protocol::methods::FsGetMetadata;

use crate::call::Call;
use crate::rooms::{Rooms, files};

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<FsGetMetadata>) {
    call.on_disk(|params| {
        let path = files::absolute(&params.path)?;
        let is_symlink = std::fs::symlink_metadata(&path)?.file_type().is_symlink();
        let target = std::fs::metadata(&path)?;
        Ok(FsGetMetadataResponse {
            is_directory: target.is_dir(),
            is_file: target.is_file(),
            is_symlink,
            created_at_ms: files::millis(target.created()),
            modified_at_ms: files::millis(target.modified()),
        })
    });
}
