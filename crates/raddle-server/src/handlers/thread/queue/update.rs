//! `thread/queue/update`: replace queued input. Its position stays.

use std::sync::Arc;

use raddle_core::{ChangeQueued, Command, ItemId};
use raddle_protocol::ThreadQueueUpdateResponse;
use raddle_protocol::methods::ThreadQueueUpdate;

use crate::call::Call;
use crate::services::threads::queue;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadQueueUpdate>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let message = match threads::message_to_queue(params.input, None) {
        Ok(message) => message,
        Err(error) => return reply.error(error),
    };
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
    state.threads.send_command(id, change, answer).await;
}
