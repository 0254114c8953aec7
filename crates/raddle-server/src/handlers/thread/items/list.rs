//! `thread/items/list`: a thread's completed items, page by page.

use std::sync::Arc;

use raddle_agent::Threads;
use raddle_core::ports::{PageCursor, PageQuery};
use raddle_protocol::methods::ThreadItemsList;
use raddle_protocol::{
    ThreadItemsListAnchor, ThreadItemsListCursor, ThreadItemsListParams, ThreadItemsListResponse,
};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::threads::{self, cursors, items, lists};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadItemsList>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let _reservation = match threads::reserve_answer(&session).await {
        Ok(reservation) => reservation,
        Err(error) => return reply.error(error),
    };
    reply.finish(list(&state.threads, params).await);
}

async fn list(
    threads: &Threads,
    params: ThreadItemsListParams,
) -> Result<ThreadItemsListResponse, WireError> {
    let newest_first = lists::newest_first(params.sort_direction.as_ref(), false)?;
    let query = PageQuery {
        cursor: cursor(threads, &params).await?,
        limit: lists::limit(params.limit),
        newest_first,
    };
    let id = params.thread_id;
    let page = threads.items(id, params.turn_id, query).await;
    let page = page.map_err(|error| threads::refused(id, error))?;
    let data = items::response_entries(threads, id, &page.entries).await;
    // With their images not all may fit; then the next page begins after the last that does.
    let last = data.len().checked_sub(1).map(|at| &page.entries[at]);
    let next_cursor = match last.filter(|_| data.len() < page.entries.len()) {
        Some(last) => {
            let (seq, included) = (last.seq, false);
            Some(PageCursor { seq, included }.to_string())
        }
        None => page.next,
    };
    let cursor = |position: Option<String>| position.map(|it| cursors::cursor(id, &it));
    Ok(ThreadItemsListResponse {
        data,
        backwards_cursor: cursor(page.back),
        next_cursor: cursor(next_cursor),
    })
}

/// Returns the cursor of the page's start. An item as anchor stands for the position next to it.
async fn cursor(
    threads: &Threads,
    params: &ThreadItemsListParams,
) -> Result<Option<String>, WireError> {
    let id = params.thread_id;
    let item = match &params.cursor {
        None => return Ok(None),
        Some(ThreadItemsListCursor::Cursor(cursor)) => {
            let position = cursors::position(id, cursor);
            return position
                .map(Some)
                .map_err(|error| threads::refused(id, error));
        }
        Some(ThreadItemsListCursor::Anchor(ThreadItemsListAnchor::Item(it))) => &it.item_id,
        Some(ThreadItemsListCursor::Anchor(ThreadItemsListAnchor::Unrecognized(_))) => {
            return Err(WireError::Refused(
                "unknown type of cursor; use item, or a cursor of an earlier answer".into(),
            ));
        }
    };
    let Some(turn) = &params.turn_id else {
        return Err(WireError::Refused(
            "an item as cursor needs turnId: the turn that the item is in".into(),
        ));
    };
    let entries = items::find(threads, id, turn, std::slice::from_ref(item)).await;
    let entries = entries.map_err(|error| threads::refused(id, error))?;
    let Some(entry) = entries.first() else {
        let what = format!("item not found: {item} is no completed item of turn {turn}");
        return Err(WireError::Refused(what.into()));
    };
    let page_cursor = PageCursor {
        seq: entry.seq,
        included: false,
    };
    Ok(Some(page_cursor.to_string()))
}
