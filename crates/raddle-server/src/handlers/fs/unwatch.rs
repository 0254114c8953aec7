//! `fs/unwatch`: end a watch. One that is not there has ended already.

use std::sync::Arc;

use raddle_protocol::FsUnwatchResponse;
use raddle_protocol::methods::FsUnwatch;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_rooms: &Arc<ServerState>, call: Call<FsUnwatch>) {
    let watch = call.session.watches().remove(&call.params.watch_id);
    drop(watch);
    call.reply.ok(&FsUnwatchResponse {});
}
