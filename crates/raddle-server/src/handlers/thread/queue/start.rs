//! `thread/queue/start`: start a turn with queued input now. No turn may be running.

use std::sync::Arc;

use raddle_core::{Command, ItemId, StartQueued};
use raddle_protocol::methods::ThreadQueueStart;
use raddle_protocol::{ThreadQueueStartResponse, TurnId};

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadQueueStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let item = params.queued_submission_id;
    let start = Command::StartQueued(StartQueued {
        item: item.map(|it| ItemId::from(it.as_str())),
        turn: TurnId::mint(),
        briefs: Vec::new(),
        principal: threads::principal(&session),
    });
    let answer = reply.into_reply_to(move |done| {
        let turn = threads::receiving_turn(id, done)?;
        let turn = threads::started_turn(turn);
        Ok(ThreadQueueStartResponse { turn })
    });
    state.threads.send_command(id, start, answer).await;
}
