//! `thread/unarchive`: bring a thread back into sight.

use std::sync::Arc;

use raddle_core::{Archive, Command, view};
use raddle_protocol::ThreadUnarchiveResponse;
use raddle_protocol::methods::ThreadUnarchive;

use crate::call::Call;
use crate::rooms::{Rooms, threads};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ThreadUnarchive>) {
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
        let answer = reply.owed(move |done| {
            let shown = done.map(|done| ThreadUnarchiveResponse {
                thread: view(done.thread),
            });
            shown.map_err(|error| threads::refused(id, error))
        });
        rooms.threads.order(id, unarchive, answer).await;
    });
}
