//! `mcpServerStatus/list`: the MCP servers and their tools.

use std::sync::Arc;

use raddle_protocol::methods::McpServerStatusList;
use raddle_protocol::{ListMcpServerStatusResponse, McpServerStatusDetail};

use crate::call::Request;
use crate::services::{ServerState, mcp_status, pages, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<McpServerStatusList>,
) -> Result<ListMcpServerStatusResponse, WireError> {
    let params = request.params;
    let settings = threads::settings_of(&state, params.thread_id).await?;
    let mut snapshots = state.mcp.snapshots(settings.as_ref()).await;
    if let Some(name) = &params.server_name {
        snapshots.retain(|it| it.name == *name);
    }
    let has_resources = params.detail != Some(McpServerStatusDetail::ToolsAndAuthOnly);
    let statuses = snapshots
        .into_iter()
        .map(|it| mcp_status::status(it, has_resources));
    let (data, next_cursor) =
        pages::page(statuses.collect(), params.cursor.as_deref(), params.limit)?;
    Ok(ListMcpServerStatusResponse { data, next_cursor })
}
