//! `plugin/installed`: the installed plugins. There are none.

use std::sync::Arc;

use raddle_protocol::PluginInstalledResponse;
use raddle_protocol::methods::PluginInstalled;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<PluginInstalled>) {
    call.reply.ok(&PluginInstalledResponse {
        marketplaces: Vec::new(),
        marketplace_load_errors: Vec::new(),
    });
}
