//! `fs/readDirectory`: what is in a folder, by name.

use std::sync::Arc;

use raddle_protocol::methods::FsReadDirectory;
use raddle_protocol::{FsReadDirectoryEntry, FsReadDirectoryResponse};

use crate::call::Call;
use crate::rooms::{Rooms, files};

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<FsReadDirectory>) {
    call.on_disk(|params| {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(files::absolute(&params.path)?)? {
            let entry = entry?;
            // What a link points to counts; a link to nowhere is neither.
            let metadata = std::fs::metadata(entry.path()).ok();
            entries.push(FsReadDirectoryEntry {
                file_name: entry.file_name().to_string_lossy().into_owned(),
                is_directory: metadata.as_ref().is_some_and(std::fs::Metadata::is_dir),
                is_file: metadata.as_ref().is_some_and(std::fs::Metadata::is_file),
            });
        }
        entries.sort_by(|a, b| a.file_name.cmp(&b.file_name));
        Ok(FsReadDirectoryResponse { entries })
    });
}
