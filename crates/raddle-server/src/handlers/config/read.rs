//! `config/read`: the configuration in force, and where each value comes from.

use std::sync::Arc;

use raddle_protocol::methods::ConfigRead;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::config_loader::ConfigSnapshot;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ConfigRead>) {
    // `cwd` changes nothing: a workspace's files are never configuration.
    let Call { params, reply, .. } = call;
    state.read_config(move |snapshot| {
        let response = |snapshot: ConfigSnapshot<'_>| {
            Ok(snapshot.read()?.read_response(params.include_layers))
        };
        reply.finish(snapshot.and_then(response));
    });
}
