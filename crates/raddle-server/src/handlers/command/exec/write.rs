//! `command/exec/write`: write to the stdin of a running command, close it, or both.

use std::sync::Arc;

use raddle_protocol::methods::CommandExecWrite;
use raddle_protocol::{CommandExecWriteParams, CommandExecWriteResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::processes::ProcessName;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<CommandExecWrite>) {
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
