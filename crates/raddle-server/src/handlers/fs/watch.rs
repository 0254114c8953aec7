//! `fs/watch`: be told when a path changes, until `fs/unwatch` or the end of the connection.

use std::sync::Arc;

use raddle_protocol::FsWatchResponse;
use raddle_protocol::methods::FsWatch;

use crate::call::Call;
use crate::rooms::watches::Watch;
use crate::rooms::{Rooms, files};
use crate::wire_error::{WireError, shown};

/// How many watches one connection may have.
const WATCHES_MAX: usize = 64;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<FsWatch>) {
    let session = call.session.clone();
    call.on_disk(move |params| {
        let path = files::absolute(&params.path)?;
        let mut watches = session.watches();
        if watches.contains_key(&params.watch_id) {
            return Err(WireError::Refused(
                format!("watchId already exists: {}", shown(&params.watch_id)).into(),
            ));
        }
        if watches.len() >= WATCHES_MAX {
            return Err(WireError::Refused(
                format!("a connection may have {WATCHES_MAX} watches").into(),
            ));
        }
        let watch = Watch::begin(params.watch_id.clone(), path, &session)
            .map_err(|error| WireError::Io(std::io::Error::other(error)))?;
        watches.insert(params.watch_id, watch);
        Ok(FsWatchResponse { path: params.path })
    });
}
