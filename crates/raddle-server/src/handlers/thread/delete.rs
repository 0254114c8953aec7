//! `thread/delete`: forget a thread. What runs in it ends with it.

use std::sync::Arc;

use raddle_agent::Ordered;
use raddle_core::{Command, Delete};
use raddle_protocol::ThreadDeleteResponse;
use raddle_protocol::methods::ThreadDelete;

use crate::call::Call;
use crate::rooms::{Rooms, threads};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ThreadDelete>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let delete = Command::Delete(Delete {
            principal: threads::principal(&session),
        });
        let answer = move |done: Ordered<'_>| {
            let deleted = done.map(|_| ThreadDeleteResponse {});
            reply.finish(deleted.map_err(|error| threads::refused(id, error)));
        };
        rooms.threads.order(id, delete, answer).await;
    });
}
