//! `mcpServerStatus/list`: the MCP servers and their tools.

use std::sync::Arc;

use raddle_core::ports::{McpServerSnapshot, McpServerState};
use raddle_protocol::methods::McpServerStatusList;
use raddle_protocol::{
    ListMcpServerStatusResponse, McpAuthStatus, McpServerConnectionStatus, McpServerStatus,
    McpServerStatusDetail,
};

use crate::call::Request;
use crate::services::{ServerState, pages, threads};
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
    let statuses = snapshots.into_iter().map(|it| status(it, has_resources));
    let (data, next_cursor) =
        pages::page(statuses.collect(), params.cursor.as_deref(), params.limit)?;
    Ok(ListMcpServerStatusResponse { data, next_cursor })
}

fn status(snapshot: McpServerSnapshot, has_resources: bool) -> McpServerStatus {
    let McpServerSnapshot {
        name,
        state,
        info,
        tools,
        resources,
        resource_templates,
        has_bearer_token,
    } = snapshot;
    let (runtime_status, tools_error) = match state {
        McpServerState::Disabled => (McpServerConnectionStatus::Disabled, None),
        McpServerState::Starting => (McpServerConnectionStatus::Starting, None),
        McpServerState::Ready => (McpServerConnectionStatus::Connected, None),
        McpServerState::Failed(error) => (McpServerConnectionStatus::Failed, Some(error)),
    };
    McpServerStatus {
        auth_status: match has_bearer_token {
            true => McpAuthStatus::BearerToken,
            false => McpAuthStatus::Unsupported,
        },
        name,
        resource_templates: if has_resources { resource_templates } else { Vec::new() },
        resources: if has_resources { resources } else { Vec::new() },
        tools: tools.into_iter().collect(),
        http_origin: None,
        plugin_id: None,
        runtime_status: Some(runtime_status),
        server_capabilities: None,
        server_info: info,
        tool_list_meta: None,
        tools_error,
    }
}
