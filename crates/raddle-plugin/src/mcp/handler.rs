//! Messages that an MCP server sends on its own.
#![expect(
    deprecated,
    reason = "servers of the previous revision still send log messages"
)]

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

use super::call::OpenCalls;

/// Longest part of a server's log message that our log contains.
const LOG_BYTES_MAX: usize = 2 << 10;

/// Handles the messages of one server. It offers the server nothing: no files, no model.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) server: Arc<str>,
    pub(crate) calls: Arc<OpenCalls>,
    /// Notified when the server's tools have changed.
    pub(crate) tools_changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.calls.report(&params);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = match &params.data {
            serde_json::Value::String(text) => text.clone(),
            data => data.to_string(),
        };
        let text = &text[..text.floor_char_boundary(LOG_BYTES_MAX)];
        let server = &*self.server;
        match params.level {
            LoggingLevel::Debug => tracing::debug!(server, text, "an MCP server logs"),
            LoggingLevel::Info | LoggingLevel::Notice => {
                tracing::info!(server, text, "an MCP server logs");
            }
            _ => tracing::warn!(server, text, "an MCP server logs"),
        }
    }

    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("raddle", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
    }
}
