//! `process/resizePty`: change the size of a process's terminal.

use std::sync::Arc;

use raddle_protocol::methods::ProcessResizePty;
use raddle_protocol::{ProcessResizePtyResponse, ProcessTerminalSize};
use raddle_sandbox::Size;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::processes::Name;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<ProcessResizePty>) {
    let ProcessTerminalSize { cols, rows } = call.params.size;
    let name = Name::Process(call.params.process_handle);
    let resized = call.session.processes.resize(&name, Size { rows, cols });
    call.reply
        .finish(resized.map(|()| ProcessResizePtyResponse {}));
}
