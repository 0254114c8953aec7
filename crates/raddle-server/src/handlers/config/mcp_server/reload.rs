//! `config/mcpServer/reload`: reload the configuration of MCP servers. The server connects to none,
//! so there is nothing to reload.

use std::sync::Arc;

use raddle_protocol::McpServerRefreshResponse;
use raddle_protocol::methods::ConfigMcpServerReload;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<ConfigMcpServerReload>) {
    call.reply.ok(&McpServerRefreshResponse {});
}
