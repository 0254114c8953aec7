//! `config/mcpServer/reload`: reload the configuration of MCP servers.

use std::sync::Arc;

use raddle_protocol::McpServerRefreshResponse;
use raddle_protocol::methods::ConfigMcpServerReload;

use crate::call::Request;
use crate::services::ServerState;
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    _: Request<ConfigMcpServerReload>,
) -> Result<McpServerRefreshResponse, WireError> {
    state.plugins.reload().await;
    state.mcp.reload().await;
    Ok(McpServerRefreshResponse {})
}
