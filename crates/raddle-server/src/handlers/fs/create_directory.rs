//! `fs/createDirectory`: a folder, with those above it unless told otherwise.

use std::sync::Arc;

use raddle_protocol::FsCreateDirectoryResponse;
use raddle_protocol::methods::FsCreateDirectory;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, LastLink, PathAdmission};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<FsCreateDirectory>) {
    PathAdmission::on_disk(rooms, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        let place = admission.place(&path, LastLink::Follow)?;
        if params.recursive.unwrap_or(true) {
            place.create_folders()?;
        } else {
            place.create_folder()?;
        }
        Ok(FsCreateDirectoryResponse {})
    });
}
