//! `fs/readFile`: a whole file.

use std::io::{self, Read as _};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raddle_protocol::FsReadFileResponse;
use raddle_protocol::methods::FsReadFile;

use crate::call::Call;
use crate::rooms::{Rooms, files};
use crate::wire_error::WireError;

/// The largest file that is read; its base64 must fit into one message.
const BYTES_MAX: u64 = 64 << 20;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<FsReadFile>) {
    call.on_disk(|params| {
        let path = files::absolute(&params.path)?;
        let mut bytes = Vec::new();
        // Bounded while reading, not by the size the file system tells: devices and pipes tell none.
        let read = std::fs::File::open(&path)?
            .take(BYTES_MAX + 1)
            .read_to_end(&mut bytes);
        match read {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                let message = format!("{} is not a file", path.display());
                return Err(WireError::Refused(message.into()));
            }
            other => other?,
        };
        if bytes.len() as u64 > BYTES_MAX {
            return Err(WireError::Refused(
                format!("{} is larger than {BYTES_MAX} bytes", path.display()).into(),
            ));
        }
        Ok(FsReadFileResponse {
            data_base64: STANDARD.encode(&bytes),
        })
    });
}
