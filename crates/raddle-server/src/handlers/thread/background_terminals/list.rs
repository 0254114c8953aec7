//! `thread/backgroundTerminals/list`: the commands that a thread's turn left running.

use std::sync::Arc;

use raddle_core::ports::BackgroundTerminal;
use raddle_protocol::methods::ThreadBackgroundTerminalsList;
use raddle_protocol::{ThreadBackgroundTerminal, ThreadBackgroundTerminalsListResponse};

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ThreadBackgroundTerminalsList>,
) -> Result<ThreadBackgroundTerminalsListResponse, WireError> {
    let id = request.params.thread_id;
    let peeked = state.threads.peek(id).await;
    peeked.map_err(|error| threads::refused(id, error))?;
    let terminals = state.threads.terminals(id).into_iter();
    Ok(ThreadBackgroundTerminalsListResponse {
        data: terminals.map(terminal_view).collect(),
        // There are few enough for one page.
        next_cursor: None,
    })
}

fn terminal_view(it: BackgroundTerminal) -> ThreadBackgroundTerminal {
    ThreadBackgroundTerminal {
        item_id: it.item,
        process_id: it.id,
        command: it.command,
        cwd: it.cwd,
        cpu_percent: None,
        os_pid: it.pid,
        rss_kb: None,
    }
}
