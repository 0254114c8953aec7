//! `thread/turns/list`: a thread's turns, page by page.

use std::sync::Arc;

use raddle_core::ports::PageQuery;
use raddle_protocol::methods::ThreadTurnsList;
use raddle_protocol::{ThreadTurnsListResponse, TurnItemsView};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::threads::{self, lists, view};

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadTurnsList>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let items = match params.items_view {
        None => TurnItemsView::Summary,
        Some(TurnItemsView::Unrecognized(it)) => {
            return reply.error(lists::unknown("itemsView", &it, TurnItemsView::KNOWN));
        }
        Some(items) => items,
    };
    let newest_first = match lists::newest_first(params.sort_direction.as_ref(), true) {
        Ok(newest_first) => newest_first,
        Err(error) => return reply.error(error),
    };
    let query = PageQuery {
        cursor: params.cursor,
        limit: lists::limit(params.limit),
        newest_first,
    };
    let (id, threads) = (params.thread_id, &state.threads);
    let _reservation = match threads::reserve_answer(&session).await {
        Ok(reservation) => reservation,
        Err(error) => return reply.error(error),
    };
    let page = view::turns_page(threads, id, query, &items).await;
    let answer = page.map(|page| ThreadTurnsListResponse {
        data: page.data,
        backwards_cursor: page.backwards_cursor,
        next_cursor: page.next_cursor,
    });
    reply.finish(answer.map_err(|error| threads::refused(id, error)));
}
