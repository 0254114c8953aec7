//! `config/read`: the configuration in force, and where each value comes from.

use std::sync::Arc;

use raddle_protocol::methods::ConfigRead;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::config::ConfigSnapshot;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ConfigRead>) {
    // `cwd` changes nothing: a workspace's files are never configuration.
    let Call { params, reply, .. } = call;
    rooms.read_config(move |looked| {
        let told = |looked: ConfigSnapshot<'_>| Ok(looked.read()?.told(params.include_layers));
        reply.finish(looked.and_then(told));
    });
}
