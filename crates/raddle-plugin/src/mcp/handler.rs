//! Messages that an MCP server sends on its own.
#![expect(
    deprecated,
    reason = "servers of the previous revision still send log messages"
)]

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    FormElicitationCapability, Implementation, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::Notify;

use super::call::OpenCalls;
use super::elicitation::Elicitations;

/// Longest part of a server's log message that our log contains.
const LOG_BYTES_MAX: usize = 2 << 10;

/// Handles the messages of one server. It offers the server questions to the user, and nothing
/// else: no files, no model.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) server: Arc<str>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) elicitations: Arc<Elicitations>,
    /// Notified when the server's tools have changed.
    pub(crate) tools_changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.elicitations.ask(request).await)
    }

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
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, name)
    }
}
