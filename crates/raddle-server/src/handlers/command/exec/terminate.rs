//! `command/exec/terminate`: end a running command and all it started.

use std::sync::Arc;

use raddle_protocol::CommandExecTerminateResponse;
use raddle_protocol::methods::CommandExecTerminate;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::processes::ProcessName;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<CommandExecTerminate>) {
    let name = ProcessName::Command(call.params.process_id);
    let ended = call.session.processes.end(&name);
    call.reply
        .finish(ended.map(|()| CommandExecTerminateResponse {}));
}
