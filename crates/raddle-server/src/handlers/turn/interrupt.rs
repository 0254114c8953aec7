//! `turn/interrupt`: stop the turn that runs. Answered once it has stopped.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::{Cause, Command, Interrupt, Refusal};
use raddle_protocol::TurnInterruptResponse;
use raddle_protocol::methods::TurnInterrupt;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<TurnInterrupt>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        // What runs may take its time to stop; others must not stand in line behind that.
        let _lane = reply.take_pass();
        let id = params.thread_id;
        let interrupt = Interrupt {
            // Who names none means whatever runs.
            turn: Some(params.turn_id).filter(|turn| !turn.as_str().is_empty()),
            cause: Cause::Client {
                principal: threads::principal(&session),
            },
        };
        let command = Command::Interrupt(interrupt);
        let answer = reply.into_reply_to(move |done| match done {
            Ok(_) => Ok(TurnInterruptResponse {}),
            Err(AgentError::Refused(Refusal::NoTurn)) => {
                Err(WireError::Refused("no active turn to interrupt".into()))
            }
            Err(error) => Err(threads::refused(id, error)),
        });
        rooms.threads.send_command(id, command, answer).await;
    });
}
