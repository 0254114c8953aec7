//! `fs/remove`: remove a file, or a folder with its contents.

use std::io;
use std::sync::Arc;

use raddle_protocol::FsRemoveResponse;
use raddle_protocol::methods::FsRemove;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, LastLink, PathAdmission};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<FsRemove>) {
    PathAdmission::on_disk(state, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        let write_path = admission.write_path(&path, LastLink::Keep)?;
        let removed = write_path.remove(params.recursive.unwrap_or(true), admission);
        match removed {
            Err(WireError::Io(error))
                if error.kind() == io::ErrorKind::NotFound && params.force.unwrap_or(true) => {}
            other => other?,
        }
        Ok(FsRemoveResponse {})
    })
    .await;
}
