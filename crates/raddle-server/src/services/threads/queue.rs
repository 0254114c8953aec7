//! What waits in a thread's queue, as answers show it.

use raddle_agent::{AgentError, CommandResult};
use raddle_core::ports::ReadError;
use raddle_core::{ItemId, Thread, ThreadId, queued_view};
use raddle_protocol as wire;

use super::{cursors, lists, refused};
use crate::wire_error::WireError;

/// The entry that an order was about.
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

/// A page of the queue. Its cursor is a place in it.
pub(crate) fn page(
    thread: &Thread,
    params: &wire::ThreadQueueListParams,
) -> Result<wire::ThreadQueueListResponse, WireError> {
    let id = params.thread_id;
    let from = match &params.cursor {
        None => 0,
        Some(cursor) => {
            let place = cursors::place(id, cursor).ok();
            let place = place.and_then(|it| it.parse::<usize>().ok());
            let refusal = || refused(id, AgentError::Read(ReadError::BadCursor));
            place.ok_or_else(refusal)?
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
