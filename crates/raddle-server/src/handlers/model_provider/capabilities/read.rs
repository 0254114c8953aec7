//! `modelProvider/capabilities/read`: the tools that a provider runs itself. The server requests
//! none of them, from any provider.

use std::sync::Arc;

use raddle_protocol::ModelProviderCapabilitiesReadResponse;
use raddle_protocol::methods::ModelProviderCapabilitiesRead;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<ModelProviderCapabilitiesRead>) {
    call.reply.ok(&ModelProviderCapabilitiesReadResponse {
        image_generation: false,
        web_search: false,
    });
}
