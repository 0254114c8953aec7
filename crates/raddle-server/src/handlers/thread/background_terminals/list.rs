//! `thread/backgroundTerminals/list`: the commands that a thread left running. No command runs in a thread yet,
//! so a thread that is there has none.

use std::sync::Arc;

use raddle_protocol::ThreadBackgroundTerminalsListResponse;
use raddle_protocol::methods::ThreadBackgroundTerminalsList;

use crate::call::Call;
use crate::rooms::{Rooms, threads};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ThreadBackgroundTerminalsList>) {
    let Call { params, reply, .. } = call;
    let threads = rooms.threads.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let listed = threads.peek(id).await;
        let listed = listed.map(|_| ThreadBackgroundTerminalsListResponse {
            data: Vec::new(),
            next_cursor: None,
        });
        reply.finish(listed.map_err(|error| threads::refused(id, error)));
    });
}
