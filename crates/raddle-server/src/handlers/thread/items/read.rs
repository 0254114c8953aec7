//! `thread/items/read`: completed items of a turn by their ids.

use std::sync::Arc;

use raddle_protocol::ThreadItemsReadResponse;
use raddle_protocol::methods::ThreadItemsRead;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::threads::{self, items};
use crate::wire_error::WireError;

/// The maximum number of items of one request.
const ITEMS_MAX: usize = 100;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadItemsRead>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if params.item_ids.is_empty() || params.item_ids.len() > ITEMS_MAX {
        let what = format!("itemIds must name 1 to {ITEMS_MAX} items");
        return reply.error(WireError::Refused(what.into()));
    }
    let (id, threads) = (params.thread_id, &state.threads);
    let _reservation = match threads::reserve_answer(&session).await {
        Ok(reservation) => reservation,
        Err(error) => return reply.error(error),
    };
    let entries = items::find(threads, id, &params.turn_id, &params.item_ids).await;
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return reply.error(threads::refused(id, error)),
    };
    let data = items::response_entries(threads, id, &entries).await;
    if data.len() < entries.len() {
        let what = "the items are too large for one answer; ask for fewer";
        return reply.error(WireError::Refused(what.into()));
    }
    reply.ok(&ThreadItemsReadResponse { data });
}
