//! `configRequirements/read`: what an administrator requires. Nothing yet: managed policy comes with
//! the policy engine.

use std::sync::Arc;

use raddle_protocol::ConfigRequirementsReadResponse;
use raddle_protocol::methods::ConfigRequirementsRead;

use crate::call::Call;
use crate::rooms::Rooms;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<ConfigRequirementsRead>) {
    call.reply.ok(&ConfigRequirementsReadResponse {
        requirements: None,
        supports_independent_speed_modes: None,
    });
}
