//! The state of MCP servers, on the wire.

use raddle_core::ports::{McpAuth, McpServerSnapshot, McpServerState};
use raddle_protocol::{
    McpAuthStatus, McpServerConnectionStatus, McpServerStartupState, McpServerStatus,
    McpServerStatusUpdatedNotification,
};

/// Returns the notification of a change.
pub(super) fn startup_status(
    name: &str,
    state: &McpServerState,
) -> McpServerStatusUpdatedNotification {
    let (status, error) = match state {
        McpServerState::Starting => (McpServerStartupState::Starting, None),
        McpServerState::Ready => (McpServerStartupState::Ready, None),
        McpServerState::Failed(error) => (McpServerStartupState::Failed, Some(error.clone())),
        McpServerState::Disabled => (McpServerStartupState::Cancelled, None),
    };
    McpServerStatusUpdatedNotification {
        thread_id: None,
        name: name.to_owned(),
        status,
        error,
        failure_reason: None,
    }
}

/// Returns the entry of a server in a list, with or without its resources.
pub(crate) fn status(snapshot: McpServerSnapshot, has_resources: bool) -> McpServerStatus {
    let McpServerSnapshot {
        name,
        plugin,
        state,
        info,
        tools,
        resources,
        resource_templates,
        auth,
    } = snapshot;
    let (runtime_status, tools_error) = match state {
        McpServerState::Disabled => (McpServerConnectionStatus::Disabled, None),
        McpServerState::Starting => (McpServerConnectionStatus::Starting, None),
        McpServerState::Ready => (McpServerConnectionStatus::Connected, None),
        McpServerState::Failed(error) => (McpServerConnectionStatus::Failed, Some(error)),
    };
    let (resources, resource_templates) = match has_resources {
        true => (resources, resource_templates),
        false => (Vec::new(), Vec::new()),
    };
    McpServerStatus {
        auth_status: match auth {
            McpAuth::Unsupported => McpAuthStatus::Unsupported,
            McpAuth::BearerToken => McpAuthStatus::BearerToken,
            McpAuth::NotLoggedIn => McpAuthStatus::NotLoggedIn,
            McpAuth::LoggedIn => McpAuthStatus::OAuth,
        },
        name,
        resource_templates,
        resources,
        tools: tools.into_iter().collect(),
        http_origin: None,
        plugin_id: plugin,
        runtime_status: Some(runtime_status),
        server_capabilities: None,
        server_info: info,
        tool_list_meta: None,
        tools_error,
    }
}
