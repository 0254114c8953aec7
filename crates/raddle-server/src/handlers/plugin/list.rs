//! `plugin/list`: the installed plugins, as those of one local marketplace.

use std::sync::Arc;

use raddle_protocol::methods::PluginList;
use raddle_protocol::{PluginListMarketplaceKind, PluginListResponse};

use crate::call::Request;
use crate::services::{ServerState, plugin_catalogue};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<PluginList>,
) -> Result<PluginListResponse, WireError> {
    let kinds = request.params.marketplace_kinds;
    let is_wanted = kinds.is_none_or(|it| it.contains(&PluginListMarketplaceKind::Local));
    Ok(PluginListResponse {
        marketplaces: match is_wanted {
            true => plugin_catalogue::marketplaces(&state).await,
            false => Vec::new(),
        },
        featured_plugin_ids: Vec::new(),
        marketplace_load_errors: Vec::new(),
    })
}
