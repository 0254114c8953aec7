//! `permissionProfile/list`: the named permission profiles.

use std::sync::Arc;

use raddle_protocol::PermissionProfileListResponse;
use raddle_protocol::methods::PermissionProfileList;

use crate::call::Call;
use crate::services::{ServerState, pages, profiles};

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<PermissionProfileList>) {
    let Call { params, reply, .. } = call;
    let server = state.clone();
    state.read_config(move |snapshot| {
        let config = match snapshot {
            Ok(snapshot) => snapshot.in_force(),
            Err(error) => return reply.error(error),
        };
        // The rules lie beside the configuration, so a client that may read one may read the other.
        let profiles = profiles::list(&server, &config.with_request(None));
        let page = pages::page(profiles, params.cursor.as_deref(), params.limit);
        reply.finish(
            page.map(|(data, next_cursor)| PermissionProfileListResponse { data, next_cursor }),
        );
    });
}
