//! `process/writeStdin`: feed a process, end its input, or both.

use std::sync::Arc;

use raddle_protocol::methods::ProcessWriteStdin;
use raddle_protocol::{ProcessWriteStdinParams, ProcessWriteStdinResponse};

use crate::call::Call;
use crate::rooms::Rooms;
use crate::rooms::processes::Name;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<ProcessWriteStdin>) {
    let ProcessWriteStdinParams {
        process_handle,
        close_stdin,
        delta_base64,
    } = call.params;
    let name = Name::Process(process_handle);
    let processes = &call.session.processes;
    let written = processes.write(&name, delta_base64.as_deref(), close_stdin);
    call.reply
        .finish(written.map(|()| ProcessWriteStdinResponse {}));
}
