//! `config/read`: the configuration in force, and where each value comes from.

use std::sync::Arc;

use raddle_protocol::methods::ConfigRead;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::config::Looked;

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ConfigRead>) {
    // `cwd` changes nothing: a workspace's files are never configuration.
    let Call { params, reply, .. } = call;
    rooms.look_at_config(move |looked| {
        let told = |looked: Looked<'_>| Ok(looked.read()?.told(params.include_layers));
        reply.finish(looked.and_then(told));
    });
}
