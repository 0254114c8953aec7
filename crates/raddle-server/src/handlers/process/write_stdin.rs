//! `process/writeStdin`: write to the stdin of a process, close it, or both.

use std::sync::Arc;

use raddle_protocol::methods::ProcessWriteStdin;
use raddle_protocol::{ProcessWriteStdinParams, ProcessWriteStdinResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::processes::ProcessName;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<ProcessWriteStdin>) {
    let ProcessWriteStdinParams {
        process_handle,
        close_stdin,
        delta_base64,
    } = call.params;
    let name = ProcessName::Process(process_handle);
    let processes = &call.session.processes;
    let written = processes.write(&name, delta_base64.as_deref(), close_stdin);
    call.reply
        .finish(written.map(|()| ProcessWriteStdinResponse {}));
}
