//! `config/read`: the configuration in force, and where each value comes from.

use std::sync::Arc;

use raddle_protocol::methods::ConfigRead;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ConfigRead>) {
    // `cwd` changes nothing: a workspace's files are never configuration.
    if let Some(state) = rooms.config.unchanged() {
        return call.reply.ok(&state.told(call.params.include_layers));
    }
    let config = rooms.config.clone();
    call.at_home(rooms, move |params| {
        let state = config.refresh();
        let state = state.map_err(|error| WireError::Refused(error.to_string().into()))?;
        Ok(state.told(params.include_layers))
    });
}
