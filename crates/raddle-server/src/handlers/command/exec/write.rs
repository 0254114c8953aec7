//! `command/exec/write`: feed a running command, end its input, or both.

use std::sync::Arc;

use raddle_protocol::methods::CommandExecWrite;
use raddle_protocol::{CommandExecWriteParams, CommandExecWriteResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::processes::ProcessName;

pub(crate) fn handle(_rooms: &Arc<ServerState>, call: Call<CommandExecWrite>) {
    let CommandExecWriteParams {
        process_id,
        close_stdin,
        delta_base64,
    } = call.params;
    let name = ProcessName::Command(process_id);
    let processes = &call.session.processes;
    let written = processes.write(&name, delta_base64.as_deref(), close_stdin);
    call.reply
        .finish(written.map(|()| CommandExecWriteResponse {}));
}
