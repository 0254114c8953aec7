//! `thread/compact/start`: compact a thread's history, in a turn of its own.

use std::sync::Arc;

use raddle_core::{Command, StartTurn, TurnKind};
use raddle_protocol::methods::ThreadCompactStart;
use raddle_protocol::{ThreadCompactStartResponse, TurnId};

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadCompactStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let id = params.thread_id;
    let start = Command::StartTurn(Box::new(StartTurn {
        turn: TurnId::mint(),
        kind: TurnKind::Compaction,
        message: None,
        change: Box::default(),
        briefs: Vec::new(),
        principal: threads::principal(&session),
        root: None,
        output_schema: None,
    }));
    let answer = reply.into_reply_to(move |done| {
        let response = done.map(|_| ThreadCompactStartResponse {});
        response.map_err(|error| threads::refused(id, error))
    });
    state.threads.send_command(id, start, answer).await;
}
