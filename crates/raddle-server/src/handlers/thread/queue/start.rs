//! `thread/queue/start`: begin a turn with queued input now. None may run.

use std::sync::Arc;

use raddle_agent::Ordered;
use raddle_core::{Command, ItemId, Outcome, StartQueued};
use raddle_protocol::methods::ThreadQueueStart;
use raddle_protocol::{ThreadQueueStartResponse, TurnId};

use crate::call::Call;
use crate::rooms::{Rooms, threads};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ThreadQueueStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let item = params.queued_submission_id;
        let start = Command::StartQueued(StartQueued {
            item: item.map(|it| ItemId::from(it.as_str())),
            turn: TurnId::mint(),
            briefs: Vec::new(),
            principal: threads::principal(&session),
        });
        let answer = move |done: Ordered<'_>| match done.map(|it| it.outcome) {
            Ok(Outcome::Started { turn } | Outcome::Joined { turn }) => {
                let turn = threads::begun(turn);
                reply.ok(&ThreadQueueStartResponse { turn });
            }
            Ok(Outcome::Done {}) => reply.error(WireError::Dropped),
            Err(error) => reply.error(threads::refused(id, error)),
        };
        rooms.threads.order(id, start, answer).await;
    });
}
