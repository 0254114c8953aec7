//! `thread/loaded/list`: the threads that are in memory.

use std::sync::Arc;

use raddle_protocol::methods::ThreadLoadedList;
use raddle_protocol::{ThreadId, ThreadLoadedListParams, ThreadLoadedListResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::wire_error::{WireError, quoted};

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ThreadLoadedList>) {
    let Call { params, reply, .. } = call;
    reply.finish(page(state.threads.loaded(), &params));
}

/// Returns a page. The cursor is the last id of the previous page; that thread may be unloaded by
/// now.
fn page(
    mut loaded: Vec<ThreadId>,
    params: &ThreadLoadedListParams,
) -> Result<ThreadLoadedListResponse, WireError> {
    if let Some(cursor) = &params.cursor {
        let refused = || WireError::Refused(format!("invalid cursor: {}", quoted(cursor)).into());
        let last: ThreadId = cursor.parse().map_err(|_| refused())?;
        loaded.retain(|id| *id > last);
    }
    let limit = params
        .limit
        .map_or(usize::MAX, |limit| limit.max(1) as usize);
    let more = loaded.len() > limit;
    loaded.truncate(limit);
    Ok(ThreadLoadedListResponse {
        next_cursor: loaded.last().filter(|_| more).map(ToString::to_string),
        data: loaded,
    })
}
