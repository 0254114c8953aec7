//! `fs/createDirectory`: a folder, with those above it unless told otherwise.

use std::sync::Arc;

use raddle_protocol::FsCreateDirectoryResponse;
use raddle_protocol::methods::FsCreateDirectory;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::files::{self, PathAdmission};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<FsCreateDirectory>) {
    PathAdmission::on_disk(rooms, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        admission.check(&path)?;
        if params.recursive.unwrap_or(true) {
            std::fs::create_dir_all(path)?;
        } else {
            std::fs::create_dir(path)?;
        }
        Ok(FsCreateDirectoryResponse {})
    });
}
