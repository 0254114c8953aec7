//! `configRequirements/read`: the requirements of an administrator. Always empty: managed policy
//! comes with the policy engine.

use std::sync::Arc;

use raddle_protocol::ConfigRequirementsReadResponse;
use raddle_protocol::methods::ConfigRequirementsRead;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<ConfigRequirementsRead>) {
    call.reply.ok(&ConfigRequirementsReadResponse {
        requirements: None,
        supports_independent_speed_modes: None,
    });
}
