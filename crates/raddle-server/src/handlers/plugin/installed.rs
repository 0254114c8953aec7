//! `plugin/installed`: the installed plugins. None is suggested for installation.

use std::sync::Arc;

use raddle_protocol::PluginInstalledResponse;
use raddle_protocol::methods::PluginInstalled;

use crate::call::Request;
use crate::services::{ServerState, plugin_catalogue};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    _: Request<PluginInstalled>,
) -> Result<PluginInstalledResponse, WireError> {
    Ok(PluginInstalledResponse {
        marketplaces: plugin_catalogue::marketplaces(&state).await,
        marketplace_load_errors: Vec::new(),
    })
}
