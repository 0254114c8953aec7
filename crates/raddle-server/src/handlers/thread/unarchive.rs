//! `thread/unarchive`: show an archived thread in lists again.

use std::sync::Arc;

use raddle_core::view;
use raddle_protocol::ThreadUnarchiveResponse;
use raddle_protocol::methods::ThreadUnarchive;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadUnarchive>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let principal = threads::principal(&session);
    let answer = reply.into_reply_to(move |done| {
        let response = done.map(|done| ThreadUnarchiveResponse {
            thread: view(done.thread),
        });
        response.map_err(|error| threads::refused(id, error))
    });
    state.threads.unarchive(id, principal, answer).await;
}
