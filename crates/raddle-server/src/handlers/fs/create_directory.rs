//! `fs/createDirectory`: a folder, with those above it unless told otherwise.

use std::sync::Arc;

use raddle_protocol::FsCreateDirectoryResponse;
use raddle_protocol::methods::FsCreateDirectory;

use crate::call::Call;
use crate::rooms::{Rooms, files};

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<FsCreateDirectory>) {
    call.on_disk(|params| {
        let path = files::absolute(&params.path)?;
        if params.recursive.unwrap_or(true) {
            std::fs::create_dir_all(path)?;
        } else {
            std::fs::create_dir(path)?;
        }
        Ok(FsCreateDirectoryResponse {})
    });
}
