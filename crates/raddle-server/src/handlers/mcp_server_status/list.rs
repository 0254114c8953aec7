//! `mcpServerStatus/list`: the MCP servers and their tools.

use std::sync::Arc;

use raddle_core::ports::McpServerSnapshot;
use raddle_protocol::methods::McpServerStatusList;
use raddle_protocol::{ListMcpServerStatusResponse, McpServerStatusDetail, ThreadId};

use crate::call::Request;
use crate::services::{ServerState, mcp_status, pages, threads};
use crate::session::Session;
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<McpServerStatusList>,
) -> Result<ListMcpServerStatusResponse, WireError> {
    let Request { params, session } = request;
    let mut snapshots = match session.is_observer() {
        true => observed(&state, &session, params.thread_id).await?,
        false => {
            let settings = threads::settings_of(&state, params.thread_id).await?;
            // Their servers are part of the list.
            state.plugins.reload().await;
            state.mcp.snapshots(settings.as_ref()).await
        }
    };
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

/// Returns the servers that run for the threads that an observer follows, or for one of them. An
/// observer starts no programs.
async fn observed(
    state: &ServerState,
    session: &Session,
    thread: Option<ThreadId>,
) -> Result<Vec<McpServerSnapshot>, WireError> {
    let mut followed = session.followed_threads();
    if let Some(id) = thread {
        threads::check_exists(state, Some(id)).await?;
        followed.retain(|it| *it == id);
    }
    let mut settings = Vec::new();
    for id in followed {
        settings.extend(threads::settings_of(state, Some(id)).await.ok().flatten());
    }
    Ok(state.mcp.running(&settings).await)
}
