//! `thread/queue/reorder`: change the order of queued input.

use std::sync::Arc;

use raddle_core::{Command, ItemId, ReorderQueue};
use raddle_protocol::ThreadQueueReorderResponse;
use raddle_protocol::methods::ThreadQueueReorder;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadQueueReorder>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let items = params.queued_submission_ids.iter();
    let reorder = Command::ReorderQueue(ReorderQueue {
        items: items.map(|it| ItemId::from(it.as_str())).collect(),
        principal: threads::principal(&session),
    });
    let answer = reply.into_reply_to(move |done| {
        let reordered = done.map(|_| ThreadQueueReorderResponse {});
        reordered.map_err(|error| threads::refused(id, error))
    });
    state.threads.send_command(id, reorder, answer).await;
}
