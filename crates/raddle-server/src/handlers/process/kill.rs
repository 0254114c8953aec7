//! `process/kill`: end a process and all it started.

use std::sync::Arc;

use raddle_protocol::ProcessKillResponse;
use raddle_protocol::methods::ProcessKill;

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::processes::Name;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<ProcessKill>) {
    let name = Name::Process(call.params.process_handle);
    let ended = call.session.processes.end(&name);
    call.reply.finish(ended.map(|()| ProcessKillResponse {}));
}
