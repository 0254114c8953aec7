//! `thread/backgroundTerminals/list`: the commands that a thread's turn left running.

use std::sync::Arc;

use raddle_core::ports::BackgroundTerminal;
use raddle_protocol::methods::ThreadBackgroundTerminalsList;
use raddle_protocol::{ThreadBackgroundTerminal, ThreadBackgroundTerminalsListResponse};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ThreadBackgroundTerminalsList>) {
    let Call { params, reply, .. } = call;
    let threads = state.threads.clone();
    spans::spawn(async move {
        let id = params.thread_id;
        let listed = threads.peek(id).await;
        // There are few enough for one page.
        let listed = listed.map(|_| ThreadBackgroundTerminalsListResponse {
            data: threads
                .terminals(id)
                .into_iter()
                .map(terminal_view)
                .collect(),
            next_cursor: None,
        });
        reply.finish(listed.map_err(|error| threads::refused(id, error)));
    });
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
