//! `command/exec/terminate`: end a running command and all it started.

use std::sync::Arc;

use raddle_protocol::CommandExecTerminateResponse;
use raddle_protocol::methods::CommandExecTerminate;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::processes::Name;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<CommandExecTerminate>) {
    let name = Name::Command(call.params.process_id);
    let ended = call.session.processes.end(&name);
    call.reply
        .finish(ended.map(|()| CommandExecTerminateResponse {}));
}
