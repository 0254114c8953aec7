//! `thread/archive`: put a thread out of sight. What runs in it is stopped first.

use std::sync::Arc;

use raddle_protocol::ThreadArchiveResponse;
use raddle_protocol::methods::ThreadArchive;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadArchive>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        if rooms.threads.is_ephemeral(id) {
            let what =
                "an ephemeral thread is not kept, so it cannot be archived; unsubscribe from it";
            return reply.error(WireError::Refused(what.into()));
        }
        let principal = threads::principal(&session);
        if let Err(error) = threads::stop(&rooms.threads, id, principal.clone()).await {
            return reply.error(threads::refused(id, error));
        }
        let answer = reply.into_reply_to(move |done| {
            let archived = done.map(|_| ThreadArchiveResponse {});
            archived.map_err(|error| threads::refused(id, error))
        });
        rooms.threads.archive(id, principal, answer).await;
    });
}
