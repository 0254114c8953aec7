//! `fs/copy`: copy a file, or with `recursive` a folder.

use std::sync::Arc;

use raddle_protocol::FsCopyResponse;
use raddle_protocol::methods::FsCopy;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, LastLink, PathAdmission};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<FsCopy>) {
    PathAdmission::on_disk(state, call, |params, admission| {
        let from = files::absolute(&params.source_path)?;
        let to = files::absolute(&params.destination_path)?;
        admission.check_name(&from)?;
        admission.write_path(&to, LastLink::Follow)?;
        if std::fs::symlink_metadata(&from)?.is_dir() && !params.recursive {
            return Err(WireError::Refused(
                "fs/copy needs recursive: true when sourcePath is a folder".into(),
            ));
        }
        if params.recursive {
            admission.check_all_below(&from)?;
        }
        if files::lands_in(&from, &to)? {
            return Err(WireError::Refused(
                "fs/copy cannot copy something onto or into itself".into(),
            ));
        }
        files::copy_any(&from, &to, admission)?;
        Ok(FsCopyResponse {})
    })
    .await;
}
