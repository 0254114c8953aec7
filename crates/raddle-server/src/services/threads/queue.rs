//! A thread's queue in responses.

use raddle_agent::{AgentError, CommandResult};
use raddle_core::ports::ReadError;
use raddle_core::{ItemId, Thread, ThreadId, queued_view};
use raddle_protocol as wire;

use super::{cursors, lists, refused};
use crate::wire_error::WireError;

/// Returns the entry that a command was about.
pub(crate) fn entry(
    id: ThreadId,
    done: CommandResult<'_>,
    item: &ItemId,
) -> Result<wire::QueuedSubmission, WireError> {
    let done = done.map_err(|error| refused(id, error))?;
    let mut queue = done.thread.queue().iter();
    let entry = queue.find(|queued| queued.item == *item);
    entry.map(queued_view).ok_or(WireError::Dropped)
}

/// Returns a page of the queue. Its cursor is a position in it.
pub(crate) fn page(
    thread: &Thread,
    params: &wire::ThreadQueueListParams,
) -> Result<wire::ThreadQueueListResponse, WireError> {
    let id = params.thread_id;
    let from = match &params.cursor {
        None => 0,
        Some(cursor) => {
            let position = cursors::position(id, cursor).ok();
            let position = position.and_then(|it| it.parse::<usize>().ok());
            let refusal = || refused(id, AgentError::Read(ReadError::BadCursor));
            position.ok_or_else(refusal)?
        }
    };
    let queue = thread.queue();
    let limit = lists::limit(params.limit);
    let page = queue.iter().skip(from).take(limit);
    let next = from.saturating_add(limit);
    Ok(wire::ThreadQueueListResponse {
        data: page.map(queued_view).collect(),
        next_cursor: (next < queue.len()).then(|| cursors::cursor(id, &next.to_string())),
    })
}
