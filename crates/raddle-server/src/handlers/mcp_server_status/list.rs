//! `mcpServerStatus/list`: the MCP servers and their tools. The server connects to none.

use std::sync::Arc;

use raddle_protocol::ListMcpServerStatusResponse;
use raddle_protocol::methods::McpServerStatusList;

use crate::call::Request;
use crate::services::{ServerState, pages, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<McpServerStatusList>,
) -> Result<ListMcpServerStatusResponse, WireError> {
    let params = request.params;
    threads::check_exists(&state, params.thread_id).await?;
    let (data, next_cursor) = pages::page(Vec::new(), params.cursor.as_deref(), params.limit)?;
    Ok(ListMcpServerStatusResponse { data, next_cursor })
}
