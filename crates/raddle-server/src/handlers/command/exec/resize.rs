//! `command/exec/resize`: change the size of a running command's terminal.

use std::sync::Arc;

use raddle_protocol::methods::CommandExecResize;
use raddle_protocol::{CommandExecResizeResponse, CommandExecTerminalSize};
use raddle_sandbox::TerminalSize;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::processes::ProcessName;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<CommandExecResize>) {
    let CommandExecTerminalSize { cols, rows } = call.params.size;
    let name = ProcessName::Command(call.params.process_id);
    let resized = call
        .session
        .processes
        .resize(&name, TerminalSize { rows, cols });
    call.reply
        .finish(resized.map(|()| CommandExecResizeResponse {}));
}
