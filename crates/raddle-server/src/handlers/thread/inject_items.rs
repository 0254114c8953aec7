//! `thread/inject_items`: add items to the history that the model sees. No notification is sent.

use std::sync::Arc;

use raddle_core::{Command, InjectItems};
use raddle_protocol::ThreadInjectItemsResponse;
use raddle_protocol::methods::ThreadInjectItems;

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadInjectItems>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let items = match threads::injected(&params.items) {
        Ok(items) => items,
        Err(error) => return reply.error(error),
    };
    let inject = Command::InjectItems(InjectItems {
        items,
        principal: threads::principal(&session),
    });
    let id = params.thread_id;
    let answer = reply.into_reply_to(move |done| {
        let injected = done.map(|_| ThreadInjectItemsResponse {});
        injected.map_err(|error| threads::refused(id, error))
    });
    state.threads.send_command(id, inject, answer).await;
}
