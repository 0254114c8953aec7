//! `thread/rollback`: the older form of `thread/revert`, which counts turns from the end.

use std::sync::Arc;

use raddle_agent::{AgentError, Threads};
use raddle_core::ports::{PageQuery, TurnEntry};
use raddle_core::view;
use raddle_protocol::methods::ThreadRollback;
use raddle_protocol::{DeprecationNoticeNotification, ThreadId, ThreadRollbackResponse, Turn};

use crate::call::Call;
use crate::services::threads::view::turns_before;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

/// Page size of the search for the first turn to drop.
const TURNS: usize = 100;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadRollback>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    session.notify(&notice().into());
    if params.num_turns == 0 {
        return reply.error(WireError::Refused("numTurns must be >= 1".into()));
    }
    let _reservation = match threads::reserve_answer(&session).await {
        Ok(reservation) => reservation,
        Err(error) => return reply.error(error),
    };
    let id = params.thread_id;
    let principal = threads::principal(&session);
    let threads_handle = &state.threads;
    let prepared = async {
        let Some(turn) = first_dropped(threads_handle, id, params.num_turns).await? else {
            return Ok(None);
        };
        threads::stop(threads_handle, id, principal.clone()).await?;
        let remaining = turns_before(threads_handle, id, turn.from).await?;
        Ok::<Option<(TurnEntry, Vec<Turn>)>, AgentError>(Some((turn, remaining)))
    };
    let (turn, remaining) = match prepared.await {
        Ok(Some(prepared)) => prepared,
        // A thread without turns stays as it is.
        Ok(None) => {
            let peek = threads_handle.peek(id).await;
            let unchanged = peek.map(|peek| ThreadRollbackResponse {
                thread: view(&peek.thread),
            });
            return reply.finish(unchanged.map_err(|error| threads::refused(id, error)));
        }
        Err(error) => return reply.error(threads::refused(id, error)),
    };
    let answer = reply.into_reply_to(move |done| {
        let reverted = done.map(|done| {
            let mut thread = view(done.thread);
            thread.turns.clone_from(&remaining);
            ThreadRollbackResponse { thread }
        });
        reverted.map_err(|error| threads::refused(id, error))
    });
    threads_handle.revert(id, turn, principal, answer).await;
}

/// Returns the oldest of the newest turns, as many as there are up to `count`.
async fn first_dropped(
    threads: &Threads,
    id: ThreadId,
    count: u32,
) -> Result<Option<TurnEntry>, AgentError> {
    let mut query = PageQuery {
        limit: TURNS,
        newest_first: true,
        cursor: None,
    };
    let (mut dropped, mut oldest) = (0, None);
    loop {
        let page = threads.turns(id, query.clone()).await?;
        for entry in page.entries {
            oldest = Some(entry);
            dropped += 1;
            if dropped == count {
                return Ok(oldest);
            }
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            return Ok(oldest);
        }
    }
}

fn notice() -> DeprecationNoticeNotification {
    DeprecationNoticeNotification {
        summary: "thread/rollback is deprecated".to_owned(),
        details: Some("Use thread/revert, which names the first turn to drop.".to_owned()),
    }
}
