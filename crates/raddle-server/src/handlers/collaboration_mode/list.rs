//! `collaborationMode/list`: the collaboration modes. There is one, in which the agent does the
//! work.

use std::sync::Arc;

use raddle_protocol::methods::CollaborationModeList;
use raddle_protocol::{CollaborationModeListResponse, CollaborationModeMask, Maybe, ModeKind};

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<CollaborationModeList>) {
    let default_mode = CollaborationModeMask {
        name: "Default".to_owned(),
        mode: Some(ModeKind::Default),
        model: None,
        reasoning_effort: Maybe::Null,
    };
    call.reply.ok(&CollaborationModeListResponse {
        data: vec![default_mode],
    });
}
