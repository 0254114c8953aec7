//! `fs/readDirectory`: the entries of a folder, by name.

use std::sync::Arc;

use raddle_protocol::methods::FsReadDirectory;
use raddle_protocol::{FsReadDirectoryEntry, FsReadDirectoryResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<FsReadDirectory>) {
    PathAdmission::on_disk(state, call, |params, admission| {
        let mut entries = Vec::new();
        let folder = files::absolute(&params.path)?;
        let admitted = admission.open(&folder)?;
        for entry in std::fs::read_dir(admitted.path())? {
            let entry = entry?;
            // Follows links. A broken link, or one to a closed path, is neither a file nor a
            // folder.
            let opened = admission.open(&folder.join(entry.file_name())).ok();
            let metadata = opened.and_then(|it| it.metadata().ok());
            entries.push(FsReadDirectoryEntry {
                file_name: entry.file_name().to_string_lossy().into_owned(),
                is_directory: metadata.as_ref().is_some_and(std::fs::Metadata::is_dir),
                is_file: metadata.as_ref().is_some_and(std::fs::Metadata::is_file),
            });
        }
        entries.sort_by(|a, b| a.file_name.cmp(&b.file_name));
        Ok(FsReadDirectoryResponse { entries })
    })
    .await;
}
