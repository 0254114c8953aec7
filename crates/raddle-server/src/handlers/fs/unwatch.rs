//! `fs/unwatch`: end a watch. An unknown watch counts as ended.

use std::sync::Arc;

use raddle_protocol::FsUnwatchResponse;
use raddle_protocol::methods::FsUnwatch;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<FsUnwatch>) {
    let watch = call.session.watches().remove(&call.params.watch_id);
    drop(watch);
    call.reply.ok(&FsUnwatchResponse {});
}
