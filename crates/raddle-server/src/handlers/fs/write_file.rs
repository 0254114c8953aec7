//! `fs/writeFile`: write a whole file, replacing its contents.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raddle_protocol::FsWriteFileResponse;
use raddle_protocol::methods::FsWriteFile;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<FsWriteFile>) {
    PathAdmission::on_disk(state, call, |params, admission| {
        let path = files::absolute(&params.path)?;
        let bytes = STANDARD.decode(&params.data_base64).map_err(|error| {
            WireError::InvalidRequest(format!("dataBase64 is not base64: {error}"))
        })?;
        files::write(&path, &bytes, admission)?;
        Ok(FsWriteFileResponse {})
    })
    .await;
}
