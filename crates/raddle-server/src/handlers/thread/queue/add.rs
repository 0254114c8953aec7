//! `thread/queue/add`: queue input until no turn runs, then start one with it. Subscribers are
//! notified that the queue changed.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::{Command, Enqueue, Thread};
use raddle_protocol::ThreadQueueAddResponse;
use raddle_protocol::methods::ThreadQueueAdd;

use crate::call::Call;
use crate::services::threads::queue;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadQueueAdd>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let message = threads::message_to_queue(params.input, Some(params.client_user_message_id));
    let message = match message {
        Ok(message) => message,
        Err(error) => return reply.error(error),
    };
    let id = params.thread_id;
    // Any other problem with the thread is reported by the command.
    if let Ok(thread) = state.threads.get(id).await
        && let Ok(true) = thread.inspect(Thread::is_archived).await
    {
        return reply.error(threads::refused(id, AgentError::Archived));
    }
    let item = message.item.clone();
    let enqueue = Command::Enqueue(Enqueue {
        message,
        principal: threads::principal(&session),
    });
    let answer = reply.into_reply_to(move |done| {
        let added = queue::entry(id, done, &item);
        added.map(|queued_submission| ThreadQueueAddResponse { queued_submission })
    });
    state.threads.send_command(id, enqueue, answer).await;
}
