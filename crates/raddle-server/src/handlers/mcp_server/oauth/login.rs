//! `mcpServer/oauth/login`: log in at an MCP server through a page in the browser.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::ThreadId;
use raddle_core::ports::McpLogin;
use raddle_protocol::methods::McpServerOauthLogin;
use raddle_protocol::{McpServerOauthLoginCompletedNotification, McpServerOauthLoginResponse};
use tokio::time::timeout;

use crate::call::Call;
use crate::services::{ServerState, threads};

/// Limit: time of a login at an MCP server, unless the client sets another one; beyond it, the
/// login fails.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);

/// Limit: time of a login at an MCP server that a client may set; beyond it, this time counts.
const LOGIN_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<McpServerOauthLogin>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if let Err(error) = threads::check_exists(&state, params.thread_id).await {
        return reply.error(error);
    }
    let scopes = params.scopes.unwrap_or_default();
    let McpLogin { page, end } = match state.mcp.log_in(&params.name, scopes).await {
        Ok(login) => login,
        Err(error) => return reply.error(error.into()),
    };
    let login_id = ThreadId::mint().to_string();
    reply.ok(&McpServerOauthLoginResponse {
        authorization_url: page,
        login_id: Some(login_id.clone()),
    });
    let seconds = params.timeout_secs.and_then(|it| u64::try_from(it).ok());
    let limit = seconds
        .map_or(LOGIN_TIMEOUT, Duration::from_secs)
        .min(LOGIN_TIMEOUT_MAX);
    let error = match timeout(limit, end).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!(
            "the login was not completed within {} s",
            limit.as_secs()
        )),
    };
    let completed = McpServerOauthLoginCompletedNotification {
        thread_id: params.thread_id,
        name: params.name,
        success: error.is_none(),
        error,
        login_id: Some(login_id),
    };
    session.notify(&completed.into());
}
