//! `mcpServer/tool/call`: call a tool of an MCP server on behalf of the client.

use std::sync::Arc;

use raddle_protocol::McpServerToolCallResponse;
use raddle_protocol::methods::McpServerToolCall;

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<McpServerToolCall>,
) -> Result<McpServerToolCallResponse, WireError> {
    let params = request.params;
    let settings = threads::settings_of(&state, Some(params.thread_id)).await?;
    let settings = settings.unwrap_or_default();
    let name = format!("{}.{}", params.server, params.tool);
    if let Some(objection) = state.threads.objection_to_tool(name).await {
        return Err(WireError::Refused(objection.into()));
    }
    let called = state
        .mcp
        .call_tool(&settings, &params.server, &params.tool, params.arguments)
        .await;
    serde_json::from_value(called?).map_err(|error| {
        let what = format!("the MCP server's result cannot be used: {error}");
        WireError::Refused(what.into())
    })
}
