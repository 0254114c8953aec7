//! `thread/archive`: hide a thread from lists. A running turn is stopped first.

use std::sync::Arc;

use raddle_protocol::ThreadArchiveResponse;
use raddle_protocol::methods::ThreadArchive;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadArchive>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    if state.threads.is_ephemeral(id) {
        let what =
            "an ephemeral thread is not stored, so it cannot be archived; unsubscribe from it";
        return reply.error(WireError::Refused(what.into()));
    }
    let principal = threads::principal(&session);
    if let Err(error) = threads::stop(&state.threads, id, principal.clone()).await {
        return reply.error(threads::refused(id, error));
    }
    let answer = reply.into_reply_to(move |done| {
        let archived = done.map(|_| ThreadArchiveResponse {});
        archived.map_err(|error| threads::refused(id, error))
    });
    state.threads.archive(id, principal, answer).await;
}
