//! `process/kill`: end a process and all it started.

use std::sync::Arc;

use raddle_protocol::ProcessKillResponse;
use raddle_protocol::methods::ProcessKill;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::processes::ProcessName;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<ProcessKill>) {
    let name = ProcessName::Process(call.params.process_handle);
    let ended = call.session.processes.end(&name);
    call.reply.finish(ended.map(|()| ProcessKillResponse {}));
}
