//! `permissionProfile/list`: the named permission profiles.

use std::sync::Arc;

use raddle_protocol::methods::PermissionProfileList;
use raddle_protocol::{PermissionProfileListResponse, PermissionProfileSummary};

use crate::call::Call;
use crate::rooms::{Rooms, pages};

/// The profiles every server has; each is a sandbox mode by another name.
const BUILT_IN: &[(&str, &str)] = &[
    (":read-only", "Reads files, changes nothing."),
    (":workspace", "Changes files in the workspace."),
    (":danger-full-access", "No fence at all."),
];

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<PermissionProfileList>) {
    let Call { params, reply, .. } = call;
    let profiles = BUILT_IN
        .iter()
        .map(|(id, description)| PermissionProfileSummary {
            id: (*id).to_owned(),
            description: Some((*description).to_owned()),
            allowed: true,
        })
        .collect();
    let page = pages::page(profiles, params.cursor.as_deref(), params.limit);
    reply.finish(
        page.map(|(data, next_cursor)| PermissionProfileListResponse { data, next_cursor }),
    );
}
