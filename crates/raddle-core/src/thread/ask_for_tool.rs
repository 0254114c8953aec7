//! A running tool asks the user something. The request ends with the tool.

use super::{Decision, Thread, closing};
use crate::{AskForTool, Event, Refusal, RequestNumber, RequestOpened};

pub(super) fn decide(thread: &Thread, it: AskForTool) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::ToolNotRunning)?;
    let running = thread.open_item(&it.item).is_some_and(|open| open.started);
    if !running || turn.stopping.is_some() {
        return Err(Refusal::ToolNotRunning);
    }
    let opened = RequestOpened {
        request: thread.next_request,
        turn: turn.id.clone(),
        item: it.item,
        ask: it.ask,
        expires_at: it.expires_at,
        digest: None,
        files: Vec::new(),
        approve_on_timeout: false,
    };
    Ok(vec![Event::RequestOpened(opened).into()].into())
}

/// Withdraws a request of a tool that runs and no longer needs the answer.
pub(super) fn withdraw(thread: &Thread, request: RequestNumber) -> Result<Decision, Refusal> {
    let open = thread.requests.get(&request).ok_or(Refusal::NoRequest)?;
    if !thread.open_item(&open.item).is_some_and(|it| it.started) {
        return Err(Refusal::ToolNotRunning);
    }
    Ok(vec![closing::withdrawn(request)].into())
}
