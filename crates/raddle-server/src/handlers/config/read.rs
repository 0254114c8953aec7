//! `config/read`: the effective configuration and where each value comes from.

use std::sync::Arc;

use raddle_protocol::methods::ConfigRead;

use crate::call::Call;
use crate::rooms::Rooms;

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ConfigRead>) {
    // `cwd` changes nothing: a workspace's files are never configuration.
    let rooms = rooms.clone();
    call.on_disk(move |params| rooms.config.read(params.include_layers));
}
