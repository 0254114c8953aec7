//! `fs/remove`: a file, or a folder with all that is in it.

use std::io;
use std::sync::Arc;

use raddle_protocol::FsRemoveResponse;
use raddle_protocol::methods::FsRemove;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, LastLink, PathAdmission};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<FsRemove>) {
    PathAdmission::on_disk(rooms, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        let place = admission.place(&path, LastLink::Keep)?;
        let removed = place.remove(params.recursive.unwrap_or(true), admission);
        match removed {
            Err(WireError::Io(error))
                if error.kind() == io::ErrorKind::NotFound && params.force.unwrap_or(true) => {}
            other => other?,
        }
        Ok(FsRemoveResponse {})
    });
}
