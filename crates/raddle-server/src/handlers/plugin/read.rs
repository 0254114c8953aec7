//! `plugin/read`: the details of an installed plugin.

use std::sync::Arc;

use raddle_protocol::PluginReadResponse;
use raddle_protocol::methods::PluginRead;

use crate::call::Request;
use crate::services::{ServerState, plugin_catalogue};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<PluginRead>,
) -> Result<PluginReadResponse, WireError> {
    let plugin = plugin_catalogue::detail(&state, &request.params).await?;
    Ok(PluginReadResponse { plugin })
}
