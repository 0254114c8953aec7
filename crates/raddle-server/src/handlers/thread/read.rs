//! `thread/read`: read a thread without opening it or subscribing to it.

use std::sync::Arc;

use raddle_core::view;
use raddle_protocol::methods::ThreadRead;
use raddle_protocol::{ThreadReadResponse, ThreadStatus};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::threads;
use crate::services::threads::view::{OpenItemText, turns};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadRead>) {
    let Call {
        params,
        mut reply,
        session,
    } = call;
    // Earlier requests on the thread are done; later ones need not wait for the pages.
    let lane = reply.take_pass();
    let id = params.thread_id;
    let peek = match state.threads.peek(id).await {
        Ok(peek) => peek,
        Err(error) => return reply.error(threads::refused(id, error)),
    };
    drop(lane);
    let mut thread = view(&peek.thread);
    let file = state.options.paths.threads.as_ref();
    let file = file.filter(|_| !thread.ephemeral);
    thread.path = file.map(|file| file.display().to_string());
    if !peek.is_loaded() {
        thread.status = ThreadStatus::NotLoaded;
    }
    if params.include_turns {
        if thread.ephemeral {
            let what = "ephemeral threads do not support includeTurns; use thread/turns/list";
            return reply.error(WireError::Refused(what.into()));
        }
        let _reservation = match threads::reserve_answer(&session).await {
            Ok(reservation) => reservation,
            Err(error) => return reply.error(error),
        };
        match turns(&state.threads, &peek, OpenItemText::WithText).await {
            Ok(turns) => thread.turns = turns,
            Err(error) => return reply.error(threads::refused(id, error)),
        }
        return reply.ok(&ThreadReadResponse {
            thread,
            read_state: None,
        });
    }
    reply.ok(&ThreadReadResponse {
        thread,
        read_state: None,
    });
}
