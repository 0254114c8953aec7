//! `mcpServer/tool/call`: call a tool of an MCP server on behalf of the client.

use std::sync::Arc;

use raddle_protocol::methods::McpServerToolCall;
use raddle_protocol::{McpServerToolCallParams, McpServerToolCallResponse};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<McpServerToolCall>) {
    let Call {
        params, mut reply, ..
    } = call;
    // A tool may take minutes, and must not hold up other requests for the thread.
    drop(reply.take_pass());
    reply.finish(response(&state, params).await);
}

async fn response(
    state: &ServerState,
    params: McpServerToolCallParams,
) -> Result<McpServerToolCallResponse, WireError> {
    let settings = threads::settings_of(state, Some(params.thread_id)).await?;
    let settings = settings.unwrap_or_default();
    let names = state.mcp.rule_names(&params.server, &params.tool);
    let objection = state.threads.objection_to_tool(&names, &settings).await;
    if let Some(objection) = objection {
        return Err(WireError::Refused(objection.into()));
    }
    // A plugin that was changed or disabled has no servers.
    state.plugins.reload().await;
    let called = state
        .mcp
        .call_tool(&settings, &params.server, &params.tool, params.arguments)
        .await;
    serde_json::from_value(called?).map_err(|error| {
        let what = format!("the MCP server's result cannot be used: {error}");
        WireError::Refused(what.into())
    })
}
