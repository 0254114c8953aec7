//! `fs/createDirectory`: create a folder, with its parents unless `recursive` is false.

use std::sync::Arc;

use raddle_protocol::FsCreateDirectoryResponse;
use raddle_protocol::methods::FsCreateDirectory;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, LastLink, PathAdmission};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<FsCreateDirectory>) {
    PathAdmission::on_disk(state, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        let write_path = admission.write_path(&path, LastLink::Follow)?;
        if params.recursive.unwrap_or(true) {
            write_path.create_folders()?;
        } else {
            write_path.create_folder()?;
        }
        Ok(FsCreateDirectoryResponse {})
    })
    .await;
}
