//! `permissionProfile/list`: the named permission profiles.

use std::sync::Arc;

use raddle_protocol::PermissionProfileListResponse;
use raddle_protocol::methods::PermissionProfileList;

use crate::call::Call;
use crate::services::{ServerState, pages, permissions};

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<PermissionProfileList>) {
    let Call { params, reply, .. } = call;
    let shared = rooms.clone();
    rooms.read_config(move |looked| {
        let config = match looked {
            Ok(looked) => looked.in_force(),
            Err(error) => return reply.error(error),
        };
        // The rules lie beside the configuration, so that who may look at one may look at the other.
        let profiles = permissions::list(&shared, &config.with_request(None));
        let page = pages::page(profiles, params.cursor.as_deref(), params.limit);
        reply.finish(
            page.map(|(data, next_cursor)| PermissionProfileListResponse { data, next_cursor }),
        );
    });
}
