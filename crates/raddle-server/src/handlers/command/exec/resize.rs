//! `command/exec/resize`: change the size of a running command's terminal.

use std::sync::Arc;

use raddle_protocol::methods::CommandExecResize;
use raddle_protocol::{CommandExecResizeResponse, CommandExecTerminalSize};
use raddle_sandbox::Size;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::processes::Name;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<CommandExecResize>) {
    let CommandExecTerminalSize { cols, rows } = call.params.size;
    let name = Name::Command(call.params.process_id);
    let resized = call.session.processes.resize(&name, Size { rows, cols });
    call.reply
        .finish(resized.map(|()| CommandExecResizeResponse {}));
}
