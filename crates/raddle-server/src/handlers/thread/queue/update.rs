//! `thread/queue/update`: give queued input other words. Its place stays.

use std::sync::Arc;

use raddle_core::{ChangeQueued, Command, ItemId};
use raddle_protocol::ThreadQueueUpdateResponse;
use raddle_protocol::methods::ThreadQueueUpdate;

use crate::call::Call;
use crate::services::threads::queue;
use crate::services::{ServerState, threads};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadQueueUpdate>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let message = match threads::message_to_queue(params.input, None) {
        Ok(message) => message,
        Err(error) => return reply.error(error),
    };
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let item = ItemId::from(params.queued_submission_id.as_str());
        let change = Command::ChangeQueued(ChangeQueued {
            item: item.clone(),
            input: message.input,
            principal: threads::principal(&session),
        });
        let answer = reply.into_reply_to(move |done| {
            let changed = queue::entry(id, done, &item);
            changed.map(|queued_submission| ThreadQueueUpdateResponse { queued_submission })
        });
        rooms.threads.send_command(id, change, answer).await;
    });
}
