//! `turn/start`: send the user's input to a thread.

use std::sync::Arc;

use raddle_core::ports::ReadError;
use raddle_core::{Command, StartTurn, TurnKind};
use raddle_protocol::methods::TurnStart;
use raddle_protocol::{TurnId, TurnStartResponse};

use crate::call::Call;
use crate::services::{ServerState, threads};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<TurnStart>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    // Held until the command is in the thread's inbox, which keeps the order from there on.
    let _lane = reply.take_pass();
    let id = params.thread_id;
    if !session.may_open(id) && state.threads.live(id).is_none() {
        let error = match state.threads.peek(id).await {
            // Clients of the unextended protocol resume the thread after this error.
            Ok(peek) if !peek.is_owned() => Some(threads::refused(id, ReadError::NotFound.into())),
            Ok(_) => None,
            Err(error) => Some(threads::refused(id, error)),
        };
        if let Some(error) = error {
            return reply.error(error);
        }
    }
    let change = match threads::change(&state, &params).await {
        Ok(change) => threads::routed(&state, id, change).await,
        Err(error) => Err(error),
    };
    let change = match change {
        Ok(change) => Box::new(change),
        Err(error) => return reply.error(error),
    };
    let (input, client_id) = (params.input, params.client_user_message_id);
    let message = threads::message(&state, &session, id, input, client_id);
    let message = match message.await {
        Ok(message) => message,
        Err(error) => return reply.error(error),
    };
    let start = StartTurn {
        turn: TurnId::mint(),
        kind: TurnKind::Work,
        message: Some(message),
        change,
        briefs: Vec::new(),
        principal: threads::principal(&session),
        root: params.root_turn_id,
        output_schema: params.output_schema,
    };
    let command = Command::StartTurn(Box::new(start));
    let answer = reply.into_reply_to(move |done| {
        let turn = threads::started_turn(threads::receiving_turn(id, done)?);
        Ok(TurnStartResponse { turn })
    });
    state.threads.send_command(id, command, answer).await;
}
