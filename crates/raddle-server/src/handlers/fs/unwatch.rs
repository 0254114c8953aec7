//! `fs/unwatch`: end a watch. One that is not there has ended already.

use std::sync::Arc;

use raddle_protocol::FsUnwatchResponse;
use raddle_protocol::methods::FsUnwatch;

use crate::call::Call;
use crate::rooms::Rooms;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<FsUnwatch>) {
    let session = call.session.clone();
    // The watcher is dropped outside the lock; ending it waits for its thread.
    call.on_disk(move |params| {
        let watch = session.watches().remove(&params.watch_id);
        drop(watch);
        Ok(FsUnwatchResponse {})
    });
}
