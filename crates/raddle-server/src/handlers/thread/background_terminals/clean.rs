//! `thread/backgroundTerminals/clean`: end the commands that a thread's turn left running.

use std::sync::Arc;

use raddle_protocol::ThreadBackgroundTerminalsCleanResponse;
use raddle_protocol::methods::ThreadBackgroundTerminalsClean;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ThreadBackgroundTerminalsClean>) {
    let Call { params, reply, .. } = call;
    let threads = state.threads.clone();
    spans::spawn(async move {
        let id = params.thread_id;
        let cleaned = threads.peek(id).await.map(|_| {
            threads.end_terminal(id, None);
            ThreadBackgroundTerminalsCleanResponse {}
        });
        reply.finish(cleaned.map_err(|error| threads::refused(id, error)));
    });
}
