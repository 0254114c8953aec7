//! `threadSection/list`: the sections in which clients group threads. The server stores none.

use std::sync::Arc;

use raddle_protocol::ThreadSectionListResponse;
use raddle_protocol::methods::ThreadSectionList;

use crate::call::Call;
use crate::services::{ServerState, pages};

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<ThreadSectionList>) {
    let Call { params, reply, .. } = call;
    let page = pages::page(Vec::new(), params.cursor.as_deref(), params.limit);
    reply.finish(page.map(|(data, next_cursor)| ThreadSectionListResponse { data, next_cursor }));
}
