//! `fs/remove`: a file, or a folder with all that is in it.

use std::io;
use std::sync::Arc;

use raddle_protocol::FsRemoveResponse;
use raddle_protocol::methods::FsRemove;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::files::{self, PathAdmission};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<FsRemove>) {
    PathAdmission::on_disk(rooms, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        admission.check_name(&path)?;
        let removed = std::fs::symlink_metadata(&path).and_then(|metadata| {
            if !metadata.is_dir() {
                std::fs::remove_file(&path)
            } else if params.recursive.unwrap_or(true) {
                files::remove_folder(&path)
            } else {
                std::fs::remove_dir(&path)
            }
        });
        match removed {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && params.force.unwrap_or(true) => {}
            other => other?,
        }
        Ok(FsRemoveResponse {})
    });
}
