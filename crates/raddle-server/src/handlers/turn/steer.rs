//! `turn/steer`: send more input to the running turn.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::{Command, Refusal, Steer};
use raddle_protocol::TurnSteerResponse;
use raddle_protocol::methods::TurnSteer;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<TurnSteer>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    // Held until the command is in the thread's inbox, which keeps the order from there on.
    let _lane = reply.take_pass();
    let id = params.thread_id;
    let (input, client_id) = (params.input, params.client_user_message_id);
    let message = threads::message(&state, &session, id, input, client_id);
    let message = match message.await {
        Ok(message) => message,
        Err(error) => return reply.error(error),
    };
    let steer = Steer {
        expected: params.expected_turn_id,
        message,
        briefs: Vec::new(),
        principal: threads::principal(&session),
    };
    let answer = reply.into_reply_to(move |done| match done {
        Err(AgentError::Refused(Refusal::NoTurn)) => Err(WireError::NothingToSteer),
        done => {
            let turn_id = threads::receiving_turn(id, done)?;
            Ok(TurnSteerResponse { turn_id })
        }
    });
    state
        .threads
        .send_command(id, Command::Steer(steer), answer)
        .await;
}
