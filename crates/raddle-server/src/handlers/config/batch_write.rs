//! `config/batchWrite`: several values of the user's configuration, all or none.

use std::sync::Arc;

use raddle_protocol::methods::ConfigBatchWrite;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ConfigBatchWrite>) {
    // `reloadUserConfig` needs no work: what was written is in force when the answer goes out.
    let (config, writer) = (rooms.config.clone(), call.session.config_writer());
    call.at_home(rooms, move |params| {
        config.write(
            &params.edits,
            params.expected_version.as_deref(),
            params.file_path.as_deref(),
            writer,
        )
    });
}
