//! `thread/backgroundTerminals/terminate`: end one command that a thread's turn left running.

use std::sync::Arc;

use raddle_protocol::ThreadBackgroundTerminalsTerminateResponse;
use raddle_protocol::methods::ThreadBackgroundTerminalsTerminate;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::spans;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ThreadBackgroundTerminalsTerminate>) {
    let Call { params, reply, .. } = call;
    let threads = state.threads.clone();
    spans::spawn(async move {
        let id = params.thread_id;
        let ended = threads
            .peek(id)
            .await
            .map(|_| ThreadBackgroundTerminalsTerminateResponse {
                terminated: threads.end_terminal(id, Some(&params.process_id)),
            });
        reply.finish(ended.map_err(|error| threads::refused(id, error)));
    });
}
