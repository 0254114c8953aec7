//! `plugin/list`: the marketplaces and their plugins. There are none.

use std::sync::Arc;

use raddle_protocol::PluginListResponse;
use raddle_protocol::methods::PluginList;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<PluginList>) {
    call.reply.ok(&PluginListResponse {
        marketplaces: Vec::new(),
        featured_plugin_ids: Vec::new(),
        marketplace_load_errors: Vec::new(),
    });
}
