//! `turn/steer`: hand more input to the turn that runs.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::{Command, Refusal, Steer};
use raddle_protocol::TurnSteerResponse;
use raddle_protocol::methods::TurnSteer;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<TurnSteer>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        // Until the thread's inbox has it: from there on the inbox keeps the order.
        let _lane = reply.take_pass();
        let id = params.thread_id;
        let (input, client_id) = (params.input, params.client_user_message_id);
        let message = threads::message(&rooms, &session, id, input, client_id);
        let message = match message.await {
            Ok(message) => message,
            Err(error) => return reply.error(error),
        };
        let steer = Steer {
            expected: params.expected_turn_id,
            message,
            principal: threads::principal(&session),
        };
        let answer = reply.into_reply_to(move |done| match done {
            Err(AgentError::Refused(Refusal::NoTurn)) => Err(WireError::NothingToSteer),
            done => {
                let turn_id = threads::taker(id, done)?;
                Ok(TurnSteerResponse { turn_id })
            }
        });
        rooms
            .threads
            .send_command(id, Command::Steer(steer), answer)
            .await;
    });
}
