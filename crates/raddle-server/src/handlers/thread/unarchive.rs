//! `thread/unarchive`: bring a thread back into sight.

use std::sync::Arc;

use raddle_core::{Archive, Command, view};
use raddle_protocol::ThreadUnarchiveResponse;
use raddle_protocol::methods::ThreadUnarchive;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadUnarchive>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let unarchive = Command::Archive(Archive {
            archived: false,
            principal: threads::principal(&session),
        });
        let answer = reply.into_reply_to(move |done| {
            let shown = done.map(|done| ThreadUnarchiveResponse {
                thread: view(done.thread),
            });
            shown.map_err(|error| threads::refused(id, error))
        });
        rooms.threads.send_command(id, unarchive, answer).await;
    });
}
