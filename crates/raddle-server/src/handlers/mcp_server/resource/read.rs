//! `mcpServer/resource/read`: read a resource of an MCP server.

use std::sync::Arc;

use raddle_protocol::McpResourceReadResponse;
use raddle_protocol::methods::McpServerResourceRead;

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<McpServerResourceRead>,
) -> Result<McpResourceReadResponse, WireError> {
    let params = request.params;
    let settings = threads::settings_of(&state, params.thread_id).await?;
    // A plugin that was changed or disabled has no servers.
    state.plugins.reload().await;
    let read = state
        .mcp
        .read_resource(settings.as_ref(), &params.server, &params.uri);
    Ok(McpResourceReadResponse {
        contents: read.await?,
        origin_call_id: params.origin_call_id,
    })
}
