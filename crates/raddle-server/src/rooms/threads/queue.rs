//! What waits in a thread's queue, as answers show it.

use raddle_agent::Ordered;
use raddle_core::{ItemId, Thread, ThreadId, queued_view};
use raddle_protocol as wire;

use super::{lists, refused};
use crate::wire_error::WireError;

/// The entry that an order was about.
pub(crate) fn entry(
    id: ThreadId,
    done: Ordered<'_>,
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
    let from = match params.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(from)) => from,
        Some(Err(_)) => {
            let what = "invalid cursor: no page of this list gave it; leave it out to begin anew";
            return Err(WireError::Refused(what.into()));
        }
    };
    let queue = thread.queue();
    let limit = lists::limit(params.limit);
    let page = queue.iter().skip(from).take(limit);
    let next = from.saturating_add(limit);
    Ok(wire::ThreadQueueListResponse {
        data: page.map(queued_view).collect(),
        next_cursor: (next < queue.len()).then(|| next.to_string()),
    })
}
