//! `process/resizePty`: change the size of a process's terminal.

use std::sync::Arc;

use raddle_protocol::methods::ProcessResizePty;
use raddle_protocol::{ProcessResizePtyResponse, ProcessTerminalSize};
use raddle_sandbox::TerminalSize;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::processes::ProcessName;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<ProcessResizePty>) {
    let ProcessTerminalSize { cols, rows } = call.params.size;
    let name = ProcessName::Process(call.params.process_handle);
    let resized = call
        .session
        .processes
        .resize(&name, TerminalSize { rows, cols });
    call.reply
        .finish(resized.map(|()| ProcessResizePtyResponse {}));
}
