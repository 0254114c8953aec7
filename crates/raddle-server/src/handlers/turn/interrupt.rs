//! `turn/interrupt`: stop the running turn. Answered once it has stopped.

use std::sync::Arc;

use raddle_agent::AgentError;
use raddle_core::{Cause, Command, Interrupt, Refusal};
use raddle_protocol::TurnInterruptResponse;
use raddle_protocol::methods::TurnInterrupt;

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<TurnInterrupt>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    // Stopping may take long; other requests must not wait for it.
    let _lane = reply.take_pass();
    let id = params.thread_id;
    let interrupt = Interrupt {
        // Without an id, the request means the running turn.
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
    state.threads.send_command(id, command, answer).await;
}
